/* Owns the jobs that read tokens, certificate and stored files again, and the look for replaced files. */
#include "server/server.h"

#include "server/process/process.h"

#include <signal.h>
#include <stddef.h>

enum { SECRETS_LOOK_MS = 5000 }; /* how often the server looks whether files of secrets have been replaced */

/* Reloading bypasses the workers' queue: a revoked token must be refused at once, however busy the workers are, and
 * reading a folder of weights takes as long as the disk does. */

static struct reload_job *reload_job_of(struct job *job)
{
    return (struct reload_job *)(void *)((char *)job - offsetof(struct reload_job, job));
}

static void read_secrets(struct job *job) /* runs on a separate thread, as does the next function */
{
    const struct reload *reload = reload_job_of(job)->reload;
    door_reread(reload->door, reload->options);
}

static void read_folder(struct job *job)
{
    const struct reload *reload = reload_job_of(job)->reload;
    if (*reload->options->weights_dir || *reload->options->store) {
        weights_reread(reload->stored->weights);
        weights_reread(reload->stored->presets);
    }
}

static void reread(struct reload *reload, struct reload_job *r, void (*read)(struct job *job));

static void reread_done(struct job *job)
{
    struct reload_job *r = reload_job_of(job);
    r->is_at_work = false;
    if (r->is_wanted && !shutdown_has_ended(r->reload->shutdown))
        reread(r->reload, r, job->work);
}

static void reread(struct reload *reload, struct reload_job *r, void (*read)(struct job *job))
{
    r->is_wanted = r->is_at_work; /* the running reload may have missed the latest change */
    if (r->is_at_work)
        return;
    *r = (struct reload_job){.reload = reload, .is_at_work = true};
    r->job = (struct job){.work = read, .done = reread_done};
    job_submit_aside(reload->loop, &r->job);
}

static void on_hangup(void *self, int signum)
{
    struct reload *reload = self;
    const struct options *options = reload->options;
    (void)signum;
    if (!*options->weights_dir && !*options->store && !reload->door->tokens && !reload->door->tls.cert)
        log_info("SIGHUP: nothing to read again");
    else if (!shutdown_has_ended(reload->shutdown)) {
        reread(reload, &reload->secrets, read_secrets);
        reread(reload, &reload->folder, read_folder);
    }
}

/* ---- Replaced files -------------------------------------------------------------------------------------------- */

/* Whether the path names another file than at the last call, as after rename() or, in Kubernetes, when a link is
 * swapped. A file that is missing is not another one: it may be just between two. A file that is written in place is
 * the same one: it may be half written, so it is left to SIGHUP. May wait for a disk. */
static bool replaced_look(struct replaced *file)
{
    struct stat about;
    if (!file->path || !*file->path || stat(file->path, &about) != 0)
        return false;
    bool is_other = about.st_dev != file->device || about.st_ino != file->inode;
    file->device = about.st_dev;
    file->inode = about.st_ino;
    return is_other;
}

static struct replaced replaced_now(const char *path)
{
    struct replaced file = {.path = path};
    replaced_look(&file);
    return file;
}

/* Kubernetes swaps the files of a Secret, and sends no signal. */
static void look_at_files(struct job *job) /* runs on a separate thread */
{
    struct reload *reload = reload_job_of(job)->reload;
    reload->is_replaced = false;
    for (size_t i = 0; i < sizeof reload->files / sizeof *reload->files; i++)
        reload->is_replaced |= replaced_look(&reload->files[i]);
}

static void looked_at_files(struct job *job)
{
    struct reload *reload = reload_job_of(job)->reload;
    reload->looking.is_at_work = false;
    if (reload->is_replaced && !shutdown_has_ended(reload->shutdown))
        reread(reload, &reload->secrets, read_secrets);
}

static void look_for_secrets(void *self)
{
    struct reload *reload = self;
    if (reload->looking.is_at_work || shutdown_has_ended(reload->shutdown))
        return;
    reload->looking = (struct reload_job){.reload = reload, .is_at_work = true};
    reload->looking.job = (struct job){.work = look_at_files, .done = looked_at_files};
    job_submit_aside(reload->loop, &reload->looking.job);
}

/* ---- The start ------------------------------------------------------------------------------------------------- */

void reload_init(struct reload *reload, const struct options *options, const struct stored *stored,
                 const struct shutdown *shutdown, struct http_door *door)
{
    const char *const secrets[] = {options->token_file, options->tls_cert, options->tls_key};
    *reload = (struct reload){.options = options, .stored = stored, .shutdown = shutdown, .door = door};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        reload->files[i] = replaced_now(secrets[i]);
}

bool reload_setup(struct reload *reload, struct loop *loop)
{
    reload->loop = loop;
    reload->look = loop_timer_new(loop, look_for_secrets, reload);
    return reload->look && loop_on_signal(loop, SIGHUP, on_hangup, reload);
}

void reload_start(struct reload *reload)
{
    if (reload->door->tokens || reload->door->tls.cert)
        loop_timer_start(reload->look, SECRETS_LOOK_MS, SECRETS_LOOK_MS);
}
