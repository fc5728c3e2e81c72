/* stages.h - how a plan is made: the stages, each in the file of its name, and what they hand to each other.
 *
 *     specialize -> assign -> rewrite -> partition -> rendezvous -> prepare -> order -> memory -> lists
 *
 * For the files of src/plan only; what becomes of it all is in plan.h. */
#ifndef TWI_STAGES_H
#define TWI_STAGES_H

#include "plan/plan.h"
#include "rewrite/rewrite.h"

#include <limits.h>

/* A block of memory that one output holds, or several when they share it. */
typedef struct twi_buffer {
    enum { TWI_IN_ARENA, TWI_IN_KEPT, TWI_IN_VARIABLE } place;
    int device;
    const twi_node *maker;        /* the first whose output it is */
    size_t bytes;
    int first, last;             /* steps of the device's list between which it is in use, both included; INT_MAX: to the
                                    end of the run */
    size_t offset;               /* in the device's arena or kept memory */
    twi_resource *variable;
    const tw_tensor *constant;   /* TWI_IN_KEPT: value to be written once; NULL for strings made by kernels, and for */
    bool is_made;                /* the address of a tensor that a kernel makes */
    bool overwritten;            /* one output is written over another */
    bool fetched;                /* a fetch so far */
    const twi_port *lent;        /* whose memory it is, while that is a tensor's; NULL: it never is */
} twi_buffer;

/* A node prepared for its device. */
typedef struct twi_task {
    twi_node *node;
    const twi_kernel *kernel;    /* NULL: a copy, a feed, a constant, or nothing at all */
    const twi_operand *operands; /* inputs, then outputs; those of tasks that are alike may be the same */
    twi_buffer **outputs;        /* [num_outputs]; shared when two outputs share memory */
    void *state;                 /* this and the next five: what the kernel's prepare() has said */
    const void *touches;
    size_t workspace_bytes;
    bool can_overwrite[4], own_team, varies;
    bool borrows;                /* the kernel's state is another task's, which is alike */
    int workspace;               /* number of the one that it gets */
    int position;                /* in its device's list, */
    int first, last;             /* and between which it may run: its own, but of loops that run side by side */
    int seat, seats;             /* among these: which one, of how many (beside.c), neighbours; 0 of 0: it runs alone */
    int phase;                   /* see order.c; 0 where no device records and nothing waits for another run */
} twi_task;

/* Bytes of a feed or a fetch that are left where its tensor has them: fewer are copied sooner than those who look at
 * them are told where they lie. */
enum { TWI_WORTH_LENDING = 1 << 16 };

/* A plan under construction. */
typedef struct twi_planning {
    const twi_request *request;
    twi_plan *plan;
    twi_rewriting rewriting;     /* region */
    int *groups;                 /* [devices] the first that it records together with; -1: it does not record */
    tw_error *error;
} twi_planning;

/* Copies what the fetches need into the region with every shape known, feeds cut out, constants folded. */
tw_status twi_specialize(twi_planning *p);
/* A read of the variable behind a handle for a node that takes a reference to it as a value: after these controls, and
 * after `writer` if there is one. */
tw_status twi_read_reference(twi_planning *p, twi_value handle, twi_value writer, const tw_node *reader,
                             const twi_value *controls, int num_controls, twi_value *value);
/* The node's attributes as its form on handles wants them. */
tw_status twi_handle_attrs(twi_planning *p, const tw_node *node, const twi_op *form, twi_attrs *attrs);
/* Those of a RestoreV2 with the shapes of what it restores. */
tw_status twi_restored_attrs(twi_planning *p, const tw_node *node, twi_attrs *attrs);
/* Turns nodes on images in NCHW that their devices refuse into such on NHWC, and what lies between them, too. */
tw_status twi_lay_images(twi_planning *p);
/* Destroys a loop that was planned; tells it where its step's workspace lies; gives it its memory, and takes it
 * away. */
void twi_loop_destroy(twi_loop *loop);
void twi_loop_bind(twi_loop *loop, void *workspace);
tw_status twi_loop_hold(twi_loop *loop, tw_error *error);
/* Puts critical sections of one mutex one after the other. */
tw_status twi_order_sections(twi_planning *p);
/* Gives every node a device that accepts it. */
tw_status twi_assign_devices(twi_planning *p);
/* Puts a _Copy on each edge between devices; one tensor crosses to one device once. */
tw_status twi_partition(twi_planning *p);
/* Makes neighbours of the members of a rendezvous, one on each device. */
tw_status twi_rendezvous(twi_planning *p);
/* Whether `node`, which comes after `before` on another device, need not wait for it: both are members of a rendezvous,
 * which sees to that, and says who is late. */
bool twi_share_rendezvous(const twi_node *node, const twi_node *before);
/* Finds a kernel for every node and prepares it; nodes that are alike share a state where their kernel allows it. */
tw_status twi_prepare_tasks(twi_planning *p);
/* Lets reads of a variable be its memory itself where order allows, puts readers before writers, sorts (what a device
 * records together), numbers positions. */
tw_status twi_order(twi_planning *p);
/* Of twi_order(): lets reductions between devices be done beside the towers' other work. */
tw_status twi_overlap(twi_planning *p);
/* Of twi_order(): makes neighbours of loops that the threads of one device may run side by side. */
tw_status twi_put_beside(twi_planning *p);
/* Makes buffers by lifetime and gives them offsets. Needs positions. */
tw_status twi_assign_memory(twi_planning *p);
/* Writes down the steps of each device and what they wait for. */
tw_status twi_make_lists(twi_planning *p);
/* Among several tasks: refuses what cannot cross between them, and what they have not all planned alike. Every task's
 * turn. */
tw_status twi_agree_on_plan(twi_planning *p);
/* Whether all tasks make the plan, at this moment. */
bool twi_is_made_by_all(const twi_planning *p);
/* Whether a node takes something of a queue, a reader or a data set. */
bool twi_may_end(const twi_op *op, const twi_attrs *attrs, int num_inputs);

/* Of the devices that nodes are assigned to: which record together. Before twi_order(). */
tw_status twi_group_devices(twi_planning *p);
/* True for a step that breaks a recording off: it copies into the group, or looks at the host. */
bool twi_breaks_recording(const twi_planning *p, const twi_node *node);
/* Finds what devices may record; and drops what they have recorded, because something lies elsewhere now. */
tw_status twi_find_segments(twi_planning *p);
void twi_forget_recordings(twi_plan *plan);

/* ---- what several stages ask ------------------------------------------------------------------------------------- */

/* A node whose output is the handle of a variable. */
bool twi_makes_variable(const twi_node *node);
/* True when output 0 of the node is its input 0's memory. */
bool twi_task_shares(const twi_task *task);
twi_buffer *twi_buffer_of(twi_value output);
/* Whether it may lie in a tensor of the caller's: it is of the host, in a process that is alone, and no loop's. */
bool twi_may_lend(const twi_planning *p, const twi_buffer *buffer);
size_t twi_buffer_room(const twi_buffer *buffer); /* its bytes, rounded up as memory is laid out */

#endif
