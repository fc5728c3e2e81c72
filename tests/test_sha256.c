/* SHA-256 against the published vectors. */
#include "testing.h"

#include "base/sha256.h"

static void hash_pieces(const char *message, size_t size, size_t piece, char text[TWI_SHA256_TEXT])
{
    twi_sha256 sha;
    twi_sha256_init(&sha);
    for (size_t at = 0; at < size; at += piece)
        twi_sha256_add(&sha, message + at, size - at < piece ? size - at : piece);
    twi_sha256_text(&sha, text);
}

static void published_messages_give_the_published_hashes(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopq"
         "rstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char text[TWI_SHA256_TEXT];
    for (int i = 0; i < 4; i++) {
        hash_pieces(vectors[i][0], strlen(vectors[i][0]), 1000, text);
        assert_string_equal(text, vectors[i][1]);
    }
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    hash_pieces(million, 1000000, 1000000, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void hash_does_not_depend_on_how_a_message_is_cut(void **state)
{
    (void)state;
    char message[300], whole[TWI_SHA256_TEXT], cut[TWI_SHA256_TEXT], previous[TWI_SHA256_TEXT] = "";
    for (int i = 0; i < 300; i++)
        message[i] = (char)(i * 37);
    for (size_t size = 0; size < 300; size++) {
        hash_pieces(message, size, 300, whole);
        for (size_t piece = 1; piece < 140; piece += 7) {
            hash_pieces(message, size, piece, cut);
            assert_string_equal(cut, whole);
        }
        assert_string_not_equal(whole, previous);
        memcpy(previous, whole, sizeof previous);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_messages_give_the_published_hashes),
        cmocka_unit_test(hash_does_not_depend_on_how_a_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
