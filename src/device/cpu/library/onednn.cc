/* onednn.cc - see onednn.h. In C++: oneDNN's C interface lets exceptions escape when memory runs out, and a C
 * program cannot catch them. The wrapper classes of dnnl.hpp also are where versions 2 and 3 differ least. */
#include "device/cpu/library/onednn.h"

#include "base/room.h"
#include "device/cpu/team.h"

#include <cstdio>
#include <new>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace {

using desc = dnnl::memory::desc;

enum { MAX_ARGUMENTS = 4 };

/* One tensor of a primitive: as the caller lays it out, and as the primitive wants it. */
struct argument {
    int id = 0;                    /* DNNL_ARG_... of the primitive */
    bool is_output = false;
    dnnl::memory outer, inner;     /* the same object when the layouts agree */
    dnnl::primitive reorder;       /* between them; empty when they agree */
    dnnl::memory reorder_scratch;  /* empty if it needs none */
    size_t offset = 0, reorder_offset = 0; /* of inner and reorder_scratch within the workspace */

    bool converts() const
    {
        return static_cast<bool>(reorder);
    }
};

/* The engine is the CPU itself: made once, never destroyed, because primitives in the library's own cache refer to it
 * to the end of the process. */
dnnl::engine &cpu()
{
    static dnnl::engine *engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
    return *engine;
}

/* The library generates code, for a primitive and when it first runs, into memory of which it does not look whether it
 * got it. What it takes at once is some MB. */
void look_for_room()
{
    if (!twi_may_have(size_t(32) << 20))
        throw std::bad_alloc();
}

/* Version 3 folded operation descriptors into primitive descriptors. */
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc forward_desc(const dnnl::primitive_attr &attr, const Arguments &...arguments)
{
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(cpu(), arguments..., attr);
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attr, cpu());
#endif
}

template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_desc(const dnnl::primitive_attr &attr, const Hint &hint,
                                                 const Arguments &...arguments)
{
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(cpu(), arguments..., hint, attr);
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attr, cpu(), hint);
#endif
}

void append_relu(dnnl::primitive_attr &attr)
{
    dnnl::post_ops post;
#if DNNL_VERSION_MAJOR >= 3
    post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#else
    post.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#endif
    attr.set_post_ops(post);
}

dnnl::memory::data_type type_of(const twi_dnnl_tensor &tensor)
{
    return tensor.dtype == TW_BFLOAT16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

desc outer_desc(const twi_dnnl_tensor &tensor)
{
    return desc(dnnl::memory::dims(tensor.dims, tensor.dims + tensor.rank), type_of(tensor),
                dnnl::memory::dims(tensor.strides, tensor.strides + tensor.rank));
}

/* What the primitive is asked for. */
desc wanted_desc(const twi_dnnl_tensor &tensor)
{
    if (!tensor.free)
        return outer_desc(tensor);
    return desc(dnnl::memory::dims(tensor.dims, tensor.dims + tensor.rank), type_of(tensor),
                dnnl::memory::format_tag::any);
}

/* Where it lies. The library takes longer over being told than over being asked, and mostly nothing has moved. */
void put(dnnl::memory &memory, const void *where)
{
    if (memory.get_data_handle() != where)
        memory.set_data_handle(const_cast<void *>(where));
}

/* Primitives are built for the team that is current; the number is part of their blocking and of their scratch. Whose
 * thread it is may have settings of his own, and gets them back. */
class team {
public:
    explicit team(int threads) : before(omp_get_max_threads()), now(threads), dynamic(omp_get_dynamic())
    {
        if (now != before)
            omp_set_num_threads(now);
        if (dynamic)
            omp_set_dynamic(0);
    }
    ~team()
    {
        if (now != before)
            omp_set_num_threads(before);
        if (dynamic)
            omp_set_dynamic(dynamic);
    }
    team(const team &) = delete;
    team &operator=(const team &) = delete;

private:
    int before, now, dynamic;
};

} // namespace

struct twi_dnnl {
    dnnl::primitive primitive;
    std::string implementation;
    dnnl::stream stream;
    argument arguments[MAX_ARGUMENTS]; /* src, weights, bias, dst; id 0: not there */
    dnnl::memory scratch;              /* at the start of the workspace; empty if none is needed */
    size_t workspace = 0;
    int threads = 1;
    bool has_run = false;

    size_t reserve(size_t bytes)
    {
        size_t offset = workspace;
        workspace += (bytes + 63) / 64 * 64;
        return offset;
    }

    void attach(int i, int id, bool is_output, const twi_dnnl_tensor &tensor, const desc &chosen)
    {
        argument &a = arguments[i];
        desc outer = outer_desc(tensor);
        a.id = id;
        a.is_output = is_output;
        a.outer = dnnl::memory(outer, cpu(), nullptr);
        a.inner = a.outer;
        if (chosen == outer)
            return;
        a.inner = dnnl::memory(chosen, cpu(), nullptr);
        a.offset = reserve(chosen.get_size());
        dnnl::primitive_attr attr;
        attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        dnnl::reorder::primitive_desc pd(is_output ? a.inner : a.outer, is_output ? a.outer : a.inner, attr);
        a.reorder = dnnl::reorder(pd);
        desc extra = pd.scratchpad_desc();
        if (extra.get_size() > 0) {
            a.reorder_scratch = dnnl::memory(extra, cpu(), nullptr);
            a.reorder_offset = reserve(extra.get_size());
        }
    }

    template <class Desc> void finish(const Desc &pd)
    {
        implementation = pd.impl_info_str();
        desc extra = pd.scratchpad_desc();
        if (extra.get_size() > 0)
            scratch = dnnl::memory(extra, cpu(), nullptr);
        reserve(extra.get_size());
        stream = dnnl::stream(cpu());
    }

    void build_convolution(const twi_dnnl_spec &s);
    void build_matmul(const twi_dnnl_spec &s);
};

void twi_dnnl::build_convolution(const twi_dnnl_spec &s)
{
    using namespace dnnl;
    const int axes = s.src.rank - 2;
    const memory::dims strides(s.strides, s.strides + axes);
    const memory::dims before(s.before, s.before + axes), after(s.after, s.after + axes);
    memory::dims dilations(s.dilations, s.dilations + axes);
    for (auto &dilation : dilations)
        dilation--; /* the library counts what is left out */
    const auto training = prop_kind::forward_training;
    const auto direct = algorithm::convolution_direct;
    const desc src = wanted_desc(s.src), weights = wanted_desc(s.weights), dst = wanted_desc(s.dst);
    primitive_attr attr;
    attr.set_scratchpad_mode(scratchpad_mode::user);

    if (s.kind == TWI_DNNL_CONVOLUTION) {
        if (s.relu)
            append_relu(attr);
        auto pd = s.bias.rank ? forward_desc<convolution_forward>(attr, training, direct, src, weights,
                                                                  outer_desc(s.bias), dst, strides, dilations, before,
                                                                  after)
                              : forward_desc<convolution_forward>(attr, training, direct, src, weights, dst, strides,
                                                                  dilations, before, after);
        finish(pd);
        attach(0, DNNL_ARG_SRC, false, s.src, pd.src_desc());
        attach(1, DNNL_ARG_WEIGHTS, false, s.weights, pd.weights_desc());
        if (s.bias.rank)
            attach(2, DNNL_ARG_BIAS, false, s.bias, pd.bias_desc());
        attach(3, DNNL_ARG_DST, true, s.dst, pd.dst_desc());
        primitive = convolution_forward(pd);
        return;
    }

    /* Backward primitives want to see the forward one; its weights may be of another type than their gradient. */
    twi_dnnl_tensor hint_weights = s.weights;
    hint_weights.dtype = s.dst.dtype;
    hint_weights.free = true;
    auto hint = forward_desc<convolution_forward>(primitive_attr(), training, direct, src, wanted_desc(hint_weights),
                                                  dst, strides, dilations, before, after);
    if (s.kind == TWI_DNNL_CONVOLUTION_DATA) {
        auto pd = backward_desc<convolution_backward_data>(attr, hint, direct, src, weights, dst, strides, dilations,
                                                           before, after);
        finish(pd);
        attach(0, DNNL_ARG_DIFF_SRC, true, s.src, pd.diff_src_desc());
        attach(1, DNNL_ARG_WEIGHTS, false, s.weights, pd.weights_desc());
        attach(3, DNNL_ARG_DIFF_DST, false, s.dst, pd.diff_dst_desc());
        primitive = convolution_backward_data(pd);
        return;
    }
    auto pd = s.bias.rank ? backward_desc<convolution_backward_weights>(attr, hint, direct, src, weights,
                                                                        outer_desc(s.bias), dst, strides, dilations,
                                                                        before, after)
                          : backward_desc<convolution_backward_weights>(attr, hint, direct, src, weights, dst, strides,
                                                                        dilations, before, after);
    finish(pd);
    attach(0, DNNL_ARG_SRC, false, s.src, pd.src_desc());
    attach(1, DNNL_ARG_DIFF_WEIGHTS, true, s.weights, pd.diff_weights_desc());
    if (s.bias.rank)
        attach(2, DNNL_ARG_DIFF_BIAS, true, s.bias, pd.diff_bias_desc());
    attach(3, DNNL_ARG_DIFF_DST, false, s.dst, pd.diff_dst_desc());
    primitive = convolution_backward_weights(pd);
}

void twi_dnnl::build_matmul(const twi_dnnl_spec &s)
{
    using namespace dnnl;
    const desc src = wanted_desc(s.src), weights = wanted_desc(s.weights), dst = wanted_desc(s.dst);
    primitive_attr attr;
    attr.set_scratchpad_mode(scratchpad_mode::user);
    if (s.relu)
        append_relu(attr);
    auto pd = s.bias.rank ? forward_desc<matmul>(attr, src, weights, outer_desc(s.bias), dst)
                          : forward_desc<matmul>(attr, src, weights, dst);
    finish(pd);
    attach(0, DNNL_ARG_SRC, false, s.src, pd.src_desc());
    attach(1, DNNL_ARG_WEIGHTS, false, s.weights, pd.weights_desc());
    if (s.bias.rank)
        attach(2, DNNL_ARG_BIAS, false, s.bias, pd.bias_desc());
    attach(3, DNNL_ARG_DST, true, s.dst, pd.dst_desc());
    primitive = matmul(pd);
}

extern "C" {

tw_status twi_dnnl_create(const twi_dnnl_spec *spec, twi_dnnl **out, tw_error *error)
{
    twi_dnnl *made = nullptr;
    *out = nullptr;
    try {
        look_for_room();
        team current(spec->threads);
        made = new twi_dnnl();
        made->threads = spec->threads;
        if (spec->kind == TWI_DNNL_MATMUL)
            made->build_matmul(*spec);
        else
            made->build_convolution(*spec);
        *out = made;
        return TW_OK;
    } catch (const dnnl::error &e) {
        delete made;
        if (e.status == dnnl_out_of_memory)
            return twi_fail_memory(error, "building a oneDNN primitive");
        return twi_fail(error, TW_UNIMPLEMENTED, "oneDNN: %s", e.what());
    } catch (const std::bad_alloc &) {
        delete made;
        return twi_fail_memory(error, "building a oneDNN primitive");
    } catch (...) {
        delete made;
        return twi_fail(error, TW_INTERNAL, "oneDNN: unknown exception");
    }
}

void twi_dnnl_destroy(twi_dnnl *primitive)
{
    delete primitive;
}

size_t twi_dnnl_workspace(const twi_dnnl *primitive)
{
    return primitive->workspace;
}

const char *twi_dnnl_implementation(const twi_dnnl *primitive)
{
    return primitive->implementation.c_str();
}

tw_status twi_dnnl_run(twi_dnnl *p, const void *src, const void *weights, const void *bias, const void *dst,
                       void *workspace, tw_error *error)
{
    const void *pointers[MAX_ARGUMENTS] = {src, weights, bias, dst};
    char *room = static_cast<char *>(workspace);
    dnnl_exec_arg_t list[MAX_ARGUMENTS + 1];
    int count = 0;
    try {
        if (!p->has_run)
            look_for_room();
        p->has_run = true;
        team current(p->threads);
        if (p->threads > 1)
            twi_team_is_libgomps();
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            argument &a = p->arguments[i];
            if (!a.id)
                continue;
            put(a.outer, pointers[i]);
            if (a.converts())
                put(a.inner, room + a.offset);
            list[count++] = {a.id, a.inner.get()};
        }
        if (p->scratch) {
            put(p->scratch, room);
            list[count++] = {DNNL_ARG_SCRATCHPAD, p->scratch.get()};
        }
        auto convert = [&](argument &a, bool to_outer) {
            dnnl_exec_arg_t pair[3] = {{DNNL_ARG_FROM, to_outer ? a.inner.get() : a.outer.get()},
                                       {DNNL_ARG_TO, to_outer ? a.outer.get() : a.inner.get()}};
            int n = 2;
            if (a.reorder_scratch) {
                put(a.reorder_scratch, room + a.reorder_offset);
                pair[n++] = {DNNL_ARG_SCRATCHPAD, a.reorder_scratch.get()};
            }
            return dnnl_primitive_execute(a.reorder.get(), p->stream.get(), n, pair);
        };
        dnnl_status_t status = dnnl_success;
        for (argument &a : p->arguments)
            if (status == dnnl_success && a.converts() && !a.is_output)
                status = convert(a, false);
        if (status == dnnl_success)
            status = dnnl_primitive_execute(p->primitive.get(), p->stream.get(), count, list);
        for (argument &a : p->arguments)
            if (status == dnnl_success && a.converts() && a.is_output)
                status = convert(a, true);
        if (status == dnnl_success)
            status = dnnl_stream_wait(p->stream.get());
        if (status != dnnl_success)
            return twi_fail(error, TW_INTERNAL, "oneDNN: '%s' failed with status %d", p->implementation.c_str(),
                            static_cast<int>(status));
        return TW_OK;
    } catch (const std::bad_alloc &) {
        return twi_fail_memory(error, "running a oneDNN primitive");
    } catch (...) {
        return twi_fail(error, TW_INTERNAL, "oneDNN: '%s' threw", p->implementation.c_str());
    }
}

void twi_dnnl_about(char *text, size_t size)
{
    const dnnl_version_t *v = dnnl_version();
    const char *name = "";
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: name = "SSE41 "; break;
    case dnnl_cpu_isa_avx: name = "AVX "; break;
    case dnnl_cpu_isa_avx2: name = "AVX2 "; break;
    case dnnl_cpu_isa_avx2_vnni: name = "AVX2_VNNI "; break;
    case dnnl_cpu_isa_avx512_core: name = "AVX512_CORE "; break;
    case dnnl_cpu_isa_avx512_core_vnni: name = "AVX512_CORE_VNNI "; break;
    case dnnl_cpu_isa_avx512_core_bf16: name = "AVX512_CORE_BF16 "; break;
    case dnnl_cpu_isa_avx512_core_amx: name = "AVX512_CORE_AMX "; break;
    default: break;
    }
    snprintf(text, size, "oneDNN %d.%d.%d with the instructions %s(%#x)", v->major, v->minor, v->patch, name,
             static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

bool twi_dnnl_has_type(tw_dtype dtype)
{
    if (dtype == TW_FLOAT32)
        return true;
    const unsigned needed = dnnl_cpu_isa_avx512_core_bf16;
    return dtype == TW_BFLOAT16 && (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & needed) == needed;
}

} // extern "C"
