/* Runs a fuzz target over files and folders of files, without a fuzzer: `make check` uses it for the corpora, which
 * make has unpacked into build/. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak)); /* a target may omit it */

enum { PATH_BYTES = 4096, INPUT_MAX = 1 << 24 };

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    if (!file || !data) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    size_t n = fread(data, 1, INPUT_MAX, file);
    fclose(file);
    uint8_t *exact =
        malloc(n ? n : 1); /* a block of the input's size, so that a sanitizer detects reads past its end */
    if (!exact)
        exit(1);
    memcpy(exact, data, n);
    free(data);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 1;
}

static int replay(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return replay_file(path);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char inner[PATH_BYTES];
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < PATH_BYTES)
            n += replay_file(inner);
    }
    closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        n += replay(argv[i]);
    printf("%d inputs replayed\n", n);
    return n > 0 ? 0 : 1;
}
