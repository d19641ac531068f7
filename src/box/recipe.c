/* What the images are made of: packages, files, masked units, and the templates that seed cloud-init.
 * Not for building (imagebuild.c). Every line costs or saves time at each first boot: measure before adding one. */
#include "box/recipe.h"

#include "base/cleanup.h"
#include "base/text.h"

/* All that every box needs, so that no template has to install it: cloud-init runs apt-get update before its
 * first package. udev: networkd waits for it where /sys is writable, which it is in an unprivileged container.
 * openssh-server: only its binary is used, on a stream that box opens; it listens nowhere. */
static const char *const trixie_packages[] = {
    "systemd",      "systemd-sysv", "systemd-resolved", "udev",           "dbus",         "cloud-init", "sudo",
    "tmux",         "curl",         "ca-certificates",  "iproute2",       "iputils-ping", "netbase",    "ncurses-base",
    "ncurses-term", "less",         "procps",           "openssh-server", "rsync",        "tzdata",     NULL,
};

/* These go into the image's own apt and dpkg settings: a box is thrown away, so dpkg need not flush each file. */
static const char *const trixie_options[] = {
    "--dpkgopt=force-unsafe-io",
    "--aptopt=Acquire::Languages \"none\"",
    NULL,
};

static const struct recipe_entry trixie_entries[] = {
    {RECIPE_REMOVE, "etc/hostname"},
    {RECIPE_REMOVE, "etc/ssh/ssh_host_*"},
    {RECIPE_REMOVE, "etc/apt/sources.list"},
    {RECIPE_REMOVE, "var/lib/dbus/machine-id"},
    {RECIPE_REMOVE, "var/lib/apt/lists/*_*"},
    {RECIPE_REMOVE, "var/cache/apt/*.bin"},
    {RECIPE_REMOVE, "var/log/apt/*"},
    {RECIPE_REMOVE, "var/log/*.log"},
    /* cloud-init's warning of a missing locale starts programs at each login and exec: 3 ms to say that all is well. */
    {RECIPE_REMOVE, "etc/profile.d/Z99-cloud*"},
    {RECIPE_REMOVE, "etc/systemd/system/multi-user.target.wants/ssh.service"},
    {RECIPE_REMOVE, "etc/systemd/system/multi-user.target.wants/remote-fs.target"},
    /* Empty, not absent: systemd then makes an id at the first boot without treating it as a factory reset. */
    {RECIPE_FILE, "etc/machine-id", ""},
    {RECIPE_LINK, "etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf"},
    {RECIPE_FILE, "etc/default/locale", "LANG=C.UTF-8\n"},
    /* A user's ping without privilege. systemd's own file asks for more groups than a container has, and gets none. */
    {RECIPE_FILE, "etc/sysctl.d/60-box.conf", "net.ipv4.ping_group_range = 0 65534\n"},
    /* Otherwise it listens on every address, and asks everybody on the link for names. */
    {RECIPE_FILE, "etc/systemd/resolved.conf.d/10-box.conf",
     "[Resolve]\n"
     "LLMNR=no\n"
     "MulticastDNS=no\n"},
    /* The MAC as DHCP identity: a copy with a new MAC gets an address of its own whatever its machine-id says. */
    {RECIPE_FILE, "etc/systemd/network/10-box.network",
     "[Match]\n"
     "Name=eth0 en*\n"
     "\n"
     "[Link]\n"
     "RequiredForOnline=routable\n"
     "RequiredFamilyForOnline=ipv4\n"
     "\n"
     "[Network]\n"
     "DHCP=ipv4\n"
     "LinkLocalAddressing=no\n"
     "IPv6AcceptRA=no\n"
     "\n"
     "[DHCPv4]\n"
     "ClientIdentifier=mac\n"},
    {RECIPE_LINK, "etc/systemd/system/multi-user.target.wants/systemd-networkd.service",
     "/usr/lib/systemd/system/systemd-networkd.service"},
    {RECIPE_LINK, "etc/systemd/system/network-online.target.wants/systemd-networkd-wait-online.service",
     "/usr/lib/systemd/system/systemd-networkd-wait-online.service"},
    /* A container sees every device of its host in /sys; only the network's events are wanted. */
    {RECIPE_FILE, "etc/systemd/system/systemd-udev-trigger.service.d/box.conf",
     "[Service]\n"
     "ExecStart=\n"
     "ExecStart=udevadm trigger --type=devices --action=add --subsystem-match=net\n"},
    /* RSA keys alone take up to a second to make. */
    {RECIPE_FILE, "etc/cloud/cloud.cfg.d/90_box.cfg",
     "datasource_list: [ NoCloud ]\n"
     "network: { config: disabled }\n"
     "ssh_genkeytypes: [ ed25519, ecdsa ]\n"
     "ssh: { emit_keys_to_console: false }\n"
     "no_ssh_fingerprints: true\n"
     "ssh_quiet_keygen: true\n"
     "locale: false\n"},
    /* A copy (the daemon writes the file, by a template below) drops its source's host keys before anything can use them,
     * and cloud-init's note that it made some: it then makes new ones, and runs nothing else again. */
    {RECIPE_FILE, "etc/systemd/system/box-copied.service",
     "[Unit]\n"
     "Description=Let a copy make host keys of its own\n"
     "DefaultDependencies=no\n"
     "ConditionPathExists=/etc/box-copied\n"
     "After=local-fs.target\n"
     "Before=cloud-init-local.service sysinit.target\n"
     "\n"
     "[Service]\n"
     "Type=oneshot\n"
     "ExecStart=/bin/sh -c 'rm -f /etc/ssh/ssh_host_* /var/lib/cloud/instances/*/sem/config_ssh /etc/box-copied'\n"},
    {RECIPE_LINK, "etc/systemd/system/sysinit.target.wants/box-copied.service",
     "/etc/systemd/system/box-copied.service"},
    {RECIPE_MASK, "ssh.service"},
    {RECIPE_MASK, "ssh.socket"},
    {RECIPE_MASK, "sshd-keygen.service"},
    {RECIPE_MASK, "apt-daily.timer"},
    {RECIPE_MASK, "apt-daily-upgrade.timer"},
    {RECIPE_MASK, "dpkg-db-backup.timer"},
    {RECIPE_MASK, "e2scrub_all.timer"},
    {RECIPE_MASK, "e2scrub_reap.service"},
    {RECIPE_MASK, "fstrim.timer"},
    {RECIPE_MASK, "getty@tty1.service"},
    {RECIPE_MASK, "systemd-modules-load.service"},
    {RECIPE_MASK, "systemd-pstore.service"},
    {RECIPE_MASK, "cloud-init-hotplugd.socket"},
};

/* cloud-init is switched off in a Debian image unless something seeds it. The instance-id is a key of the box: a copy
 * keeps it, so that the modules of a first boot do not run again on a clone. */
static const struct recipe_template trixie_templates[] = {
    {"/etc/hostname", "hostname.tpl", "create, copy, rename", "{{ container.name }}\n"},
    {"/etc/hosts", "hosts.tpl", "create, copy, rename",
     "127.0.0.1 localhost\n"
     "127.0.1.1 {{ container.name }}\n"
     "\n"
     "::1 localhost ip6-localhost ip6-loopback\n"
     "ff02::1 ip6-allnodes\n"
     "ff02::2 ip6-allrouters\n"},
    {"/var/lib/cloud/seed/nocloud-net/meta-data", "meta-data.tpl", "create, copy, rename",
     "instance-id: {{ config_get(\"user.box.instance-id\", container.name) }}\n"
     "local-hostname: {{ container.name }}\n"},
    /* A copy is another machine before it boots (identity.c knows by the last of these that it need not see to that: files
     * of a stopped container cost a second). */
    {"/etc/machine-id", "empty.tpl", "copy", ""},
    {"/etc/ssh/ssh_host_ed25519_key", "empty.tpl", "copy", ""},
    {"/etc/ssh/ssh_host_ecdsa_key", "empty.tpl", "copy", ""},
    {RECIPE_COPIED, "copied.tpl", "copy", "{{ container.name }}\n"},
    {"/var/lib/cloud/seed/nocloud-net/user-data", "user-data.tpl", "create, copy",
     /* Incus hands a value on without the line ends at its end: they are put back by letters (mintbody.c). */
     "{{ config_get(\"cloud-init.user-data\", properties.default) }}"
     "{% for end in config_get(\"user.box.tail\", \"n\") %}"
     "{% if end == \"n\" %}\n{% endif %}{% if end == \"r\" %}\r{% endif %}"
     "{% endfor %}"},
    {"/var/lib/cloud/seed/nocloud-net/vendor-data", "vendor-data.tpl", "create, copy",
     "{{ config_get(\"cloud-init.vendor-data\", properties.default) }}\n"},
};

const struct recipe recipe_trixie = {
    .alias = "debian/13",
    .os = "Debian",
    .release = "13",
    .suite = "trixie",
    .description = "Debian 13 (trixie) for boxes",
    .packages = trixie_packages,
    .options = trixie_options,
    .entries = trixie_entries,
    .entry_count = ARRAY_LENGTH(trixie_entries),
    .templates = trixie_templates,
    .template_count = ARRAY_LENGTH(trixie_templates),
};

static const struct recipe *const recipes[] = {&recipe_trixie, &vmrecipe_trixie};

const char *const recipe_aliases[] = {"debian/13", "debian/13" RECIPE_VM_SUFFIX, NULL};

const struct recipe *recipe_find(const char *alias)
{
    for (size_t i = 0; i < ARRAY_LENGTH(recipes); i++) {
        if (text_equal(recipes[i]->alias, alias)) {
            return recipes[i];
        }
    }
    return NULL;
}
