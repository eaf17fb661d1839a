/* A diagnosis in this process: cc diagnose.c $(pkg-config --cflags --libs posenc) -lm -o diagnose
 *
 * A port has rotated the neighbouring channels of q; Llama's layout pairs each channel of the first half with one of
 * the second. The service's answer, as text, says so. */
#include <math.h>
#include <posenc.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char body[4096], piece[4096];
    int n = sprintf(
        body, "{\"scheme\":\"rope\",\"layout\":\"half\",\"head_dim\":4,\"offset\":1,\"q\":[[1,2,3,4]],\"q_out\":[[");
    const double q[] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i += 2) {
        double angle = pow(10000, -i / 4.0);
        n += sprintf(body + n, "%s%.9g,%.9g", i ? "," : "", q[i] * cos(angle) - q[i + 1] * sin(angle),
                     q[i + 1] * cos(angle) + q[i] * sin(angle));
    }
    strcpy(body + n, "]]}");
    struct pe_reply *reply = pe_call("POST", "/diagnose?format=text", "application/json", body, strlen(body), 0, 0);
    if (!reply)
        return 2;
    for (ptrdiff_t got; (got = pe_reply_read(reply, piece, sizeof piece)) > 0;)
        fwrite(piece, 1, (size_t)got, stdout);
    int status = pe_reply_status(reply) == 200 ? 0 : 2;
    pe_reply_free(reply);
    return status;
}
