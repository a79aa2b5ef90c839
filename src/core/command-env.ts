/** Environment variables that a task may set: none that change how programs are found, loaded or configured. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,199}$/;

const PREFIXES = [
  // Loaders and the C library; shells.
  'LD_ DYLD_ _RLD GLIBC_ MALLOC_ GCONV_ LIBC_ BASH_ ZSH_ KSH_ FISH_',
  // Interpreters and run-times.
  'PERL PYTHON RUBYOPT RUBYLIB RUBYPATH RUBYSHELL RUBY_ GEM_ BUNDLE_ NODE_OPT NODE_PATH NODE_REPL NODE_V8 NODE_REDIRECT',
  'DENO_ BUN_ NPM_CONFIG_ YARN_ PNPM_ COREPACK_ JAVA_ JDK_ _JAVA_ JVM_ KOTLIN_ PHP_INI LUA_ R_PROFILE R_ENVIRON R_LIBS R_HOME',
  'JULIA_ ERL_ ELIXIR_ GUILE_ CABAL_ OCAML CAML_ MONO_ DOTNET_ CORECLR_ COMPLUS_ COR_ SBCL_',
  // Version control and build tools.
  'GIT_ SVN_ CVS_ CMAKE_ NINJA_ PKG_CONFIG GCC_ COMPILER_ CCACHE_ RUSTC RUSTUP_ RUSTFLAGS RUSTDOC CARGO_BUILD CARGO_TARGET',
  'CARGO_HOME CARGO_ALIAS GOFLAGS GOROOT GOPATH GOTOOL GOENV GOBIN CGO_ MAVEN_ GRADLE_ ANT_ SBT_ PIP_ UV_ POETRY_ VIRTUAL_ENV',
  'CONDA_ NIX_ GUIX_',
  // Programs that start others, and libraries that load modules.
  'NVIM_ SUDO_ SSH_ASKPASS RSYNC_ FZF_ RIPGREP_ OPENSSL_ CURL_ ANSIBLE_ TF_CLI DBUS_ SYSTEMD_ GTK_ QT_ GIO_ GST_ GDK_ MAGICK_',
  'XDG_ TERMINFO',
  'COTERIE_',
];

const NAMES = [
  'PATH HOME IFS ENV SHELL SHELLOPTS BASHOPTS CDPATH GLOBIGNORE EXECIGNORE FPATH ZDOTDIR INPUTRC HISTFILE TMOUT POSIXLY_CORRECT',
  'PS0 PS1 PS2 PS3 PS4 PROMPT PROMPT_COMMAND',
  'LOCPATH NLSPATH HOSTALIASES RES_OPTIONS RESOLV_HOST_CONF LOCALDOMAIN TZDIR GETCONF_DIR',
  'CLASSPATH PHPRC NODE_EXTRA_CA_CERTS TCLLIBPATH TCL_LIBRARY TCLINIT AWKPATH AWKLIBPATH GHCRTS GHC_PACKAGE_PATH GHC_ENVIRONMENT',
  'MAKE MAKEFLAGS MAKEFILES MAKEOVERRIDES MFLAGS GNUMAKEFLAGS CC CXX CPP FC LD AS AR NM RANLIB LIBTOOL CONFIG_SITE CONFIG_SHELL',
  'LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH ACLOCAL_PATH M4PATH',
  'HG HGRCPATH HGEDITOR HGMERGE HGPLAIN PAGER MANPAGER MANOPT MANPATH MANROFFOPT LESS LESSOPEN LESSCLOSE LESSKEY LESSKEYIN LESSEDIT',
  'EDITOR VISUAL BROWSER ALTERNATE_EDITOR FCEDIT EXINIT VIM VIMINIT VIMRUNTIME GVIMINIT MYVIMRC EMACSLOADPATH EMACSDATA EMACSPATH',
  'SCREENRC WGETRC NETRC PSQLRC PSQL_PAGER PSQL_EDITOR PGSERVICEFILE MYSQL_HOME KUBECONFIG KUBE_EDITOR GNUPGHOME XAUTHORITY',
  'SSLKEYLOGFILE TAR_OPTIONS GZIP ZIPOPT UNZIP PARALLEL PARALLEL_HOME PARALLEL_SHELL GREP_OPTIONS TERMCAP DEBUGINFOD_URLS',
  'LIBGL_DRIVERS_PATH VK_LAYER_PATH VK_INSTANCE_LAYERS',
];

const words = (lists: string[]) => lists.flatMap((list) => list.split(' '));
const PREFIX = new RegExp(`^(?:${words(PREFIXES).join('|')})`, 'i');
const KEPT = new Set(words(NAMES));
/** `IFS` and `ifs` are two variables, but people read them as one. */
const isKept = (name: string) => PREFIX.test(name) || KEPT.has(name.toUpperCase());
/** The kernel's limit for one string, including the name, is slightly higher. */
const LONGEST = 100_000;
const MOST_BYTES = 1_000_000;

export function commandEnv(given: Readonly<Record<string, string>>): {
  env: Record<string, string>;
  refused: string[];
} {
  const env: Record<string, string> = {};
  const refused: string[] = [];
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    const size = Buffer.byteLength(value);
    const isPlain = NAME.test(name) && !isKept(name) && !value.includes('\0');
    if (!isPlain || size > LONGEST || bytes + size > MOST_BYTES) {
      refused.push(name);
      continue;
    }
    bytes += size;
    env[name] = value;
  }
  return { env, refused };
}

/** Values that look like secrets: redacted in output, model requests, the journal and messages to people. */
const NAMED_SO =
  /key|token|secret|passw|passphrase|passcode|pwd|credential|auth|cookie|session|private|signature|webhook|dsn|(?:^|_)(?:pass|pin|pat|otp)(?:_|$)/i;
const LOGIN_IN_ADDRESS = /:\/\/[^\s/@:]*:[^\s/@]+@/;
/** Runs of letters and digits: words have no digits, numbers no letters; dates and versions are shorter. */
const RUN = /[A-Za-z0-9+=_-]{16,}/g;

const PATH = /^~?(?:\/[\w.@ -]+){2,}\/?$/;

/** Shorter values match parts of many words. */
const LEAST_CHARS = 8;

const REDACTED = '[redacted]';

export function looksSecret(name: string, value: string): boolean {
  if (NAMED_SO.test(name) || LOGIN_IN_ADDRESS.test(value) || value.includes('PRIVATE KEY')) return true;
  // Folder names look random (`/tmp/build-EoL35q`), and command output is full of them.
  if (PATH.test(value)) return false;
  return (value.match(RUN) ?? []).some((run) => /\d/.test(run) && /[A-Za-z]/.test(run) && !isDated(run));
}

/** `2026-02-10_evolver_workspace`: joined words and dates. */
function isDated(run: string): boolean {
  return run.split(/[-_]/).every((part) => /^(?:\d{1,8}|[A-Za-z]+)$/.test(part));
}

export function redactor(env: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = Object.entries(env)
    .filter(([name, value]) => value.length >= LEAST_CHARS && looksSecret(name, value))
    .map(([, value]) => value)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text);
}
