#!/bin/sh
# Prepares a machine for Caudal: machine.sh <python> <folder of the virtual environment>.
# On Debian or Ubuntu as root, missing system packages are installed; elsewhere the script says exactly what is missing.
set -eu

python="$1"
venv="$2"

say() { printf '\033[36m•\033[0m %s\n' "$1"; }
fail() { printf '\033[31m✗\033[0m %s\n' "$1" >&2; exit 1; }

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

updated=no
update_packages() { # once, when something is to be installed; tells whether it worked
    [ "$updated" = yes ] && return
    apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 || return 1
    updated=yes
}

install_package() { # install_package <debian package> <why>; tells whether it worked
    say "installing $1 ($2)"
    update_packages || return 1
    DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

require_package() { # require_package <debian package> <why>
    install_package "$1" "$2" || fail "apt-get could not install $1: is there a network?"
}

how_to_get() { # how_to_get <debian package> <fedora package> <brew formula>
    printf '    Debian, Ubuntu:  sudo apt-get install %s\n' "$1"
    printf '    Fedora, RHEL:    sudo dnf install %s\n' "$2"
    printf '    macOS:           brew install %s\n' "$3"
}

# --- Python -----------------------------------------------------------------------------------------------------------

if ! command -v "$python" >/dev/null 2>&1; then
    if can_install; then
        require_package python3 "the language everything is written in"
    else
        how_to_get python3 python3 python@3.13 >&2
        fail "$python is missing. Get it as above, or name another one: make setup PYTHON=/path/to/python3.11"
    fi
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail \
    "$("$python" --version) is too old: Caudal needs Python 3.11 or newer. Try: make setup PYTHON=python3.11"

if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    if can_install; then
        require_package python3-venv "virtual environments"
    else
        how_to_get python3-venv python3 python@3.13 >&2
        fail "$python cannot make virtual environments: its venv module is missing. Get it as above."
    fi
fi

# --- tools that tests use ---------------------------------------------------------------------------------------------

wish_for() { # wish_for <debian package> <fedora package> <brew formula> <what it is for>
    can_install && install_package "$1" "$4" && return
    say "$1 is missing: its tests will be skipped. To have them:"
    how_to_get "$1" "$2" "$3"
}

command -v kcat >/dev/null 2>&1 \
    || wish_for kcat kcat kcat "a foreign Kafka client that tests use"

command -v curl >/dev/null 2>&1 \
    || wish_for curl curl curl "what people ask HTTP services with, and the examples do"

command -v sqlite3 >/dev/null 2>&1 \
    || wish_for sqlite3 sqlite sqlite "what the tour lets you look at its database with"

command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
    || wish_for postgresql postgresql-server postgresql "a database of registries and connectors; tests start their own"

command -v redis-server >/dev/null 2>&1 \
    || wish_for redis-server redis redis "what Celery workers of Connect listen to; tests start their own"

command -v mariadbd >/dev/null 2>&1 || [ -x /usr/sbin/mariadbd ] \
    || wish_for mariadb-server mariadb-server mariadb "a database of connectors; tests start their own"

# --- Java, for Spark ---------------------------------------------------------------------------------------------------

java_is_new_enough() { # as Spark looks for it: in JAVA_HOME, else on the path
    version=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${version:-0}" -ge 17 ]
}

if ! java_is_new_enough; then
    package=openjdk-17-jre-headless
    # Newer releases of Debian have no 17, but a default that is newer.
    can_install && update_packages && ! apt-cache show "$package" >/dev/null 2>&1 && package=default-jre-headless
    wish_for "$package" java-21-openjdk-headless openjdk@21 "Java 17 or newer, which Spark runs on"
    java_is_new_enough || say "Spark will not start without Java 17 or newer${JAVA_HOME:+ (JAVA_HOME is $JAVA_HOME)}"
fi

# --- Python packages --------------------------------------------------------------------------------------------------

if [ ! -x "$venv/bin/python" ]; then
    say "making $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi

install_with_pip() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

install_with_uv() { # in a third of pip's time; from the index that pip is told to use
    install_with_pip --constraint requirements.lock uv || return 1
    index=$("$venv/bin/python" -m pip config list | sed -n "s/^.*\.index-url='\(.*\)'$/\1/p" | tail -n 1)
    cache="$venv/uv-cache" code=0
    env ${index:+"UV_DEFAULT_INDEX=$index"} UV_CACHE_DIR="$cache" UV_NATIVE_TLS=true \
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --compile-bytecode "$@" || code=$?
    rm -rf "$cache"
    return "$code"
}

say "installing Python packages (requirements.lock)"
install_with_uv --requirement requirements.lock || {
    say "uv could not do it: pip takes longer, and knows more ways to packages"
    install_with_pip --use-pep517 --requirement requirements.lock
}
install_with_pip --no-deps --editable .
"$venv/bin/python" -m compileall -q core_broker schema_registry rest_proxy connect streams connectors deploy # the first start is as quick as the others
say "ready: $("$venv/bin/python" --version), $venv/bin/caudal"
