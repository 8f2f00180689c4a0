// SPDX-License-Identifier: Apache-2.0
// Runs a program on a lab machine as `docker exec` does in a container: as anybody, with the groups of that person and an
// environment of nothing but a search path, a home and what is asked for, at /, in the root of all cgroups. No PAM session
// is opened and no unit is entered. Started by root over ssh, through no shell of that person.
//
//   enter USER [NAME=VALUE...] -- PROGRAM [ARGUMENT...]
//
// Its exit code is the program's, 128+n where signal n ended it, 126 or 127 where it cannot be executed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int done, const char *what) {
    if (done) return;
    fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
    exit(125);
}

static void leave_every_unit(void) {
    int cgroup = open("/sys/fs/cgroup/cgroup.procs", O_WRONLY | O_CLOEXEC);
    must(cgroup >= 0 && write(cgroup, "0", 1) == 1, "/sys/fs/cgroup/cgroup.procs");
}

/** From the files themselves: a static program cannot load what getpwnam asks. */
static struct passwd *person_called(const char *name) {
    FILE *people = fopen("/etc/passwd", "re");
    must(people != NULL, "/etc/passwd");
    struct passwd *person;
    while ((person = fgetpwent(people)) != NULL && strcmp(person->pw_name, name) != 0) continue;
    fclose(people);
    must(person != NULL, name);
    return person;
}

static void take_groups(const struct passwd *person) {
    gid_t groups[256] = {person->pw_gid};
    size_t count = 1;
    FILE *all = fopen("/etc/group", "re");
    must(all != NULL, "/etc/group");
    for (const struct group *group; count < 256 && (group = fgetgrent(all)) != NULL;) {
        for (char **member = group->gr_mem; *member != NULL; member++)
            if (strcmp(*member, person->pw_name) == 0 && group->gr_gid != person->pw_gid) groups[count++] = group->gr_gid;
    }
    fclose(all);
    must(setgroups(count, groups) == 0, "groups");
}

static void become(const struct passwd *person) {
    must(clearenv() == 0, "environment");
    must(setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) == 0, "PATH");
    must(setenv("HOME", person->pw_dir, 1) == 0, "HOME");
    take_groups(person);
    must(setresgid(person->pw_gid, person->pw_gid, person->pw_gid) == 0, "group");
    must(setresuid(person->pw_uid, person->pw_uid, person->pw_uid) == 0, "user");
    must(chdir("/") == 0, "/");
}

int main(int count, char **words) {
    (void)count;
    char **word = words + 1;
    must(*word != NULL, "no user");
    leave_every_unit();
    pid_t program = fork();
    must(program >= 0, "fork");
    if (program > 0) {
        int status;
        while (waitpid(program, &status, 0) < 0) must(errno == EINTR, "wait");
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    must(setsid() >= 0, "session");
    // A person at a terminal: it becomes that of the new session, so that the shell there has job control.
    if (isatty(STDIN_FILENO)) must(ioctl(STDIN_FILENO, TIOCSCTTY, 1) == 0, "terminal");
    become(person_called(*word++));
    for (; *word != NULL && strcmp(*word, "--") != 0; word++) must(putenv(*word) == 0, *word);
    must(*word != NULL && word[1] != NULL, "no program");
    execvp(word[1], word + 1);
    fprintf(stderr, "enter: %s: %s\n", word[1], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
