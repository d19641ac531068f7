/* A template before the programs of its image: cloud-init's own schema, the users it would make, the shell's syntax.
 * Not for the verdicts (templatecheck.c): here it is only asked. */
#include "box/templatejudge.h"

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "box/birth.h"
#include "box/imagesource.h"
#include "box/remove.h"
#include "box/tag.h"
#include "incus/exec.h"
#include "incus/execbody.h"
#include "incus/guestfile.h"
#include "incus/instance.h"
#include "stack/names.h"

#include <stdlib.h>
#include <string.h>

#define CREATE_BUDGET  (3 * 60 * 1000)
#define START_BUDGET   60000
#define ASK_BUDGET     60000
#define ANSWER_CEILING (64 * 1024)
#define DATA_PATH      "/root/user-data.yaml"
#define SCRIPT_PATH    "/root/converge.sh"

/* cloud-init's Python has its YAML and its schema. "default" is the user that cloud.cfg describes. */
static const char judge[] =
    "import difflib, json, os, re, shutil, subprocess, sys\n"
    "import yaml\n"
    "data, script = sys.argv[1:]\n"
    "def run(*words):\n"
    "    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')\n"
    "    return done.returncode, (done.stdout + done.stderr).strip()\n"
    "def place(text, key, indent=''):\n"
    "    found = [number for number, line in enumerate(text.splitlines(), 1)\n"
    "             if re.match(indent + r'[\"\\']?' + re.escape(key) + r'[\"\\']?\\s*:', line)]\n"
    "    return f'user-data.yaml:{found[0]}: ' if key and (not indent and found or len(found) == 1) else ''\n"
    "def clean(text, known, path, words):\n"
    "    top = place(text, path.split('.')[0]) or 'user-data.yaml: '\n"
    "    odd = re.search(r\"\\((.*) (?:was|were) unexpected\\)\", words)\n"
    "    keys = re.findall(r\"'([^']*)'\", odd.group(1)) if odd else []\n"
    "    if keys and path in ('', keys[0]):\n"
    "        near = difflib.get_close_matches(keys[0], known, 1, 0.75)\n"
    "        return (place(text, keys[0]) or top) + f'unknown key {keys[0]}' + (f': did you mean {near[0]}?' if near "
    "else '')\n"
    "    if keys:\n"
    "        return (place(text, keys[0], r'[\\s-]*') or top) + f'{path}: unknown key {keys[0]}'\n"
    "    tail = re.search(r' ((?:is|does|has) (?:not|too|no) .*)$', words, re.S)\n"
    "    words = tail.group(1) if tail else words\n"
    "    words = words.replace('is not valid under any of the given schemas', 'is not of a form that cloud-init "
    "takes')\n"
    "    words += f' (did you mean {path}s?)' if path + 's' in known else ''\n"
    "    return top + (path or 'the whole') + (' ' if tail else ': ') + words[:160]\n"
    "def choose(text, known, problems):\n"
    "    found = {}\n"
    "    for path, words in problems:\n"
    "        words = clean(text, known, path, words)\n"
    "        if path not in found or 'unknown key' in words:\n"
    "            found[path] = words\n"
    "    return '; '.join(list(found.values())[:3])\n"
    "def told(text, words):\n"
    "    if not text.startswith('#cloud-config'):\n"
    "        return 'user-data.yaml:1: the first line is not #cloud-config'\n"
    "    try:\n"
    "        config = yaml.safe_load(text)\n"
    "    except yaml.MarkedYAMLError as fault:\n"
    "        mark = fault.problem_mark or fault.context_mark\n"
    "        return f'user-data.yaml:{mark.line + 1}:{mark.column + 1}: {fault.problem}'\n"
    "    except yaml.YAMLError:\n"
    "        config = None\n"
    "    try:\n"
    "        from cloudinit.config import schema\n"
    "        known = schema.get_schema()\n"
    "        try:\n"
    "            schema.validate_cloudconfig_schema(config, known, strict=True, log_details=False)\n"
    "        except schema.SchemaValidationError as fault:\n"
    "            return choose(text, known.get('properties', {}), fault.schema_errors)\n"
    "    except Exception:\n"
    "        pass\n"
    "    words = words.split('schema errors: ')[-1].split('Error: Invalid')[0].replace('/root/', '').strip()\n"
    "    words = re.sub(r'format-l(\\d+)\\.c(\\d+): ', r'user-data.yaml:\\1:\\2: ', words)\n"
    "    return words[:200] or 'it is refused'\n"
    "text = open(data, encoding='utf-8').read()\n"
    "known = ('#!', '#include', '#cloud-boothook', '#cloud-config-archive', '#cloud-config-jsonp', '#part-handler',\n"
    "         '## template', 'Content-Type:', 'MIME-Version:')\n"
    "answer = {'cloud_config': not text.startswith(known), 'schema': '', 'users': [], 'syntax': None, 'missing': "
    "None}\n"
    "if answer['cloud_config']:\n"
    "    status, words = run('cloud-init', 'schema', '--config-file', data)\n"
    "    answer['schema'] = told(text, words) if status else ''\n"
    "    try:\n"
    "        config = yaml.safe_load(text)\n"
    "    except yaml.YAMLError:\n"
    "        config = []\n"
    "    readable = isinstance(config, dict) or config is None\n"
    "    config = config if isinstance(config, dict) else {}\n"
    "    users = config.get('users', ['default'])\n"
    "    users = users.split(',') if isinstance(users, str) else users if isinstance(users, list) else list(users or "
    "[])\n"
    "    users += [config['user']] if config.get('user') else []\n"
    "    system = yaml.safe_load(open('/etc/cloud/cloud.cfg', encoding='utf-8')) or {}\n"
    "    default = ((system.get('system_info') or {}).get('default_user') or {}).get('name')\n"
    "    names = [user.get('name') if isinstance(user, dict) else user for user in users]\n"
    "    answer['users'] = [str(default if name == 'default' else name).strip() for name in names if name] if readable "
    "else None\n"
    "if os.path.exists(script):\n"
    "    line = open(script, encoding='utf-8').readline()\n"
    "    program = re.match(r'#!\\s*(?:/usr/bin/env\\s+(?:-S\\s+)?)?(\\S+)', line)\n"
    "    if program and not shutil.which(program.group(1)):\n"
    "        offers = [path for path in map(shutil.which, ('sh', 'bash', 'python3', 'perl')) if path]\n"
    "        made = not answer['cloud_config'] or os.path.basename(program.group(1)) in text\n"
    "        answer['missing'] = f'no {program.group(1)} in the image, which has ' + ', '.join(offers)\n"
    "        answer['made'] = made\n"
    "    shell = not answer['missing'] and re.match(r'#!\\s*(?:/usr/bin/env\\s+)?(\\S*?(?:ba|da|)sh)(\\s|$)', line)\n"
    "    if shell:\n"
    "        status, words = run(shell.group(1), '-n', script)\n"
    "        answer['syntax'] = (words.replace('/root/', '') or 'it cannot be read') if status else ''\n"
    "json.dump(answer, sys.stdout)\n";

static char *one_line(const char *text)
{
    CLEANUP(freep) char *clean = text_sanitise(text ? text : "", text ? strnlen(text, 600) : 0);

    for (char *at = clean; (at = strpbrk(at, "\n\t")) != NULL;) {
        *at = ' ';
    }
    return steal(&clean);
}

int templatejudge_read(const char *data, size_t length, struct templatejudge_answer *ret_answer, struct error *err)
{
    CLEANUP(json_freep) json_t *object = NULL;
    CLEANUP(buffer_reset) struct buffer users = {0};
    json_t *user;
    size_t i;

    if (json_parse(data, length, "the guest's answer", &object, err) < 0) {
        return -1;
    }
    json_array_foreach(json_object_get(object, "users"), i, user)
    {
        if (json_is_string(user) && users.length < ANSWER_CEILING) {
            buffer_append_format(&users, "%s%s", users.length > 0 ? " " : "", json_string_value(user));
        }
    }
    const char *schema = json_text(object, "schema");
    const char *syntax = json_text(object, "syntax");
    const char *missing = json_text(object, "missing");

    if (!schema) {
        return error_set(err, ERR_PROTOCOL, "the guest's answer says nothing of the schema");
    }
    *ret_answer = (struct templatejudge_answer){
        .cloud_config = json_is_true(json_object_get(object, "cloud_config")),
        .schema = one_line(schema),
        .users = json_is_array(json_object_get(object, "users")) ? one_line(users.data) : NULL,
        .syntax = syntax ? one_line(syntax) : NULL,
        .missing = missing ? one_line(missing) : NULL,
        .made = json_is_true(json_object_get(object, "made")),
    };
    return 0;
}

static int create(struct client *client, const char *name, const char *id, const struct imagesource *source,
                  struct error *err)
{
    CLEANUP(json_freep)
    json_t *body =
        json_pack("{s:s, s:s, s:[s], s:{s:s, s:s, s:s, s:s}, s:{s:s, s:s}}", "name", name, "type", "container",
                  "profiles", STACK_PROFILE, "config", TAG_KEY, "1", TAG_STATE, TAG_STATE_MINTING, TAG_MINT, id,
                  "boot.autostart", "false", "source", "type", "image", "fingerprint", source->fingerprint);

    if (!body) {
        abort();
    }
    if (instance_create(client, body, CREATE_BUDGET, NULL, err) < 0) {
        return -1;
    }
    return instance_change_state(client, name, "start", -1, false, START_BUDGET, NULL, err);
}

static int put_files(struct client *client, const char *name, const struct template *template, struct error *err)
{
    const struct guestfile_owner owner = {.mode = 0600};

    if (guestfile_write(client, name, DATA_PATH, template->user_data ? template->user_data : "",
                        template->user_data_length, &owner, err) < 0) {
        return -1;
    }
    return template->script
               ? guestfile_write(client, name, SCRIPT_PATH, template->script, template->script_length, &owner, err)
               : 0;
}

static int ask(struct client *client, const char *name, struct narrator *narrator,
               struct templatejudge_answer *ret_answer, struct error *err)
{
    const char *const command[] = {"/usr/bin/python3", "-c", judge, DATA_PATH, SCRIPT_PATH, NULL};
    CLEANUP(buffer_reset) struct buffer output = {0};
    CLEANUP(buffer_reset) struct buffer errors = {0};
    CLEANUP(json_freep) json_t *environment = execbody_root_environment();
    const struct exec_request request = {.instance = name,
                                         .command = command,
                                         .environment = environment,
                                         .directory = "/",
                                         .input = -1,
                                         .output = -1,
                                         .errors = -1,
                                         .capture = &output,
                                         .capture_errors = &errors,
                                         .ceiling = ANSWER_CEILING,
                                         .budget = ASK_BUDGET,
                                         .narrator = narrator};
    int status = 0;

    if (exec_run(client, &request, &status, err) < 0) {
        return -1;
    }
    if (status != 0) {
        CLEANUP(freep) char *words = one_line(errors.data);

        return error_set(err, ERR_STATE, "the image cannot judge it (exit status %d): %s", status, words);
    }
    return templatejudge_read(output.data ? output.data : "", output.length, ret_answer, err);
}

static void clean_up(struct client *client, const char *name, const char *id, struct narrator *narrator)
{
    CLEANUP(error_reset) struct error cause = {0};
    bool removed = false;

    cancel_mask(true);
    if (remove_minted(client, name, id, NULL, &removed, &cause) < 0) {
        narrate_warn(narrator, "cannot clean up: %s. If `box list` shows %s: box rm %s", cause.message, name, name);
    }
    cancel_mask(false);
}

int templatejudge_ask(struct client *client, const struct template *template, struct narrator *narrator,
                      struct templatejudge_answer *ret_answer, struct error *err)
{
    CLEANUP(imagesource_reset) struct imagesource source = {0};
    struct birth birth = {0};

    if (imagesource_find(client, template->image, false, &source, err) < 0 || birth_begin(&birth, err) < 0) {
        return -1;
    }
    if (!source.fingerprint) {
        error_set(err, ERR_STATE, "the image %s is not on this host", template->image);
        return imagesource_remedy(template->image, false, err);
    }
    CLEANUP(freep) char *name = xasprintf("check-%s", birth.id);

    narrate_step(narrator, "asking the programs of %s", template->image);
    int result = create(client, name, birth.id, &source, err) < 0 || put_files(client, name, template, err) < 0 ||
                         ask(client, name, narrator, ret_answer, err) < 0
                     ? -1
                     : 0;

    clean_up(client, name, birth.id, narrator);
    if (result == 0) {
        narrate_done(narrator, "%s", "");
    }
    return result;
}

void templatejudge_reset(struct templatejudge_answer *answer)
{
    free(answer->schema);
    free(answer->users);
    free(answer->syntax);
    free(answer->missing);
    *answer = (struct templatejudge_answer){0};
}
