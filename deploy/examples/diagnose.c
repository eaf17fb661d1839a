/* A diagnosis in this process: cc diagnose.c $(pkg-config --cflags --libs posenc) -o diagnose
 *
 * At position 1 a port has rotated the neighbouring channels of q, 1 with 2 by an angle of 1 and 3 with 4 by 0.01; the
 * layout half pairs channel 0 with 2, and 1 with 3. The service's answer, as text, says so. */
#include <posenc.h>
#include <stdio.h>
#include <string.h>

static const char request[] = "{\"scheme\":\"rope\",\"layout\":\"half\",\"head_dim\":4,\"offset\":1,\"q\":[[1,2,3,4]],"
                              "\"q_out\":[[-1.1426396637,1.9220755966,2.9598506679,4.0297995017]]}";

int main(void)
{
    char piece[65536];
    struct pe_reply *reply =
        pe_call("POST", "/diagnose?format=text", "application/json", request, strlen(request), 0, 0);
    if (!reply)
        return fputs("no memory\n", stderr), 2;
    for (ptrdiff_t n; (n = pe_reply_read(reply, piece, sizeof piece)) > 0;)
        fwrite(piece, 1, (size_t)n, stdout);
    int status = pe_reply_status(reply) == 200 ? 0 : 2;
    pe_reply_free(reply);
    return status;
}
