import { isIP } from 'node:net';
import * as z from 'zod';
import { address, amount, expected, text, webAddress } from './channels/kit/descriptor.js';
import { TOOL_GROUPS } from './core/tool.js';

type Rule<Section> = [keys: string[], what: string, holds: (section: Section) => boolean];

/** A rule: `key` must be set if one of the others is. */
export function needed(key: string, what: string, ...others: string[]): Rule<Record<string, unknown>> {
  return [
    [key, ...others],
    what,
    (section) => section[key] !== null || others.every((each) => section[each] === null),
  ];
}

/** null if absent. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return z.nullable(schema).default(null as never);
}

export function list<Item extends z.ZodType>(item: Item, what: string) {
  return z.array(item, expected(what));
}

export function pattern(what: string, form: RegExp) {
  return z.string(expected(what)).check(z.regex(form, expected(what)));
}

export function seconds() {
  return amount('a number of seconds above 0', 0.001);
}

export const NETWORKS = 'a list of addresses and networks, like 127.0.0.1 and 10.0.0.0/8';

export function network() {
  return z.string(expected(NETWORKS)).check(z.refine(isNetwork, expected(NETWORKS)));
}

function isNetwork(value: string): boolean {
  const [address = '', bits, ...more] = value.split('/');
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return (
    more.length === 0 && most > 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  );
}

export const ORIGINS = 'a list of origins, like https://home.example or http://pi.local:8420';

/** As browsers send `Origin`: without a path, also for a page below one. */
export function webOrigin() {
  return z.string(expected(ORIGINS)).check(z.refine(isOrigin, expected(ORIGINS)));
}

function isOrigin(value: string): boolean {
  if (!/^https?:/i.test(value) || !URL.canParse(value)) return false;
  const { origin, href } = new URL(value);
  return href === `${origin}/`;
}

export function redisAddress() {
  return address('an address that begins with redis:// or rediss://', /^rediss?$/);
}

const STORE = 'an address like postgres://user:password@host:5432/database';
/** The library ignores any other word, and then does not encrypt. */
const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];

/** A PostgreSQL database. */
export function storeAddress() {
  return z.string(expected(STORE)).superRefine((value, context) => {
    const wanted = wantedInstead(value);
    if (wanted !== null) context.addIssue({ code: 'custom', message: `expected ${wanted}` });
  });
}

/** null: nothing is wrong with the address. */
function wantedInstead(address: string): string | null {
  if (!/^postgres(ql)?:/i.test(address)) {
    return `${STORE}; without one, the store is an SQLite file in data_dir`;
  }
  // With a `/`, `?`, `#` or `@` in it, a password would become the host or the database, which messages name.
  const parts = /^\w+:\/\/([^/?#]*)(?:\/[^/?#@]*)?(?:\?[^#@]*)?$/.exec(address);
  if (parts === null || (parts[1] ?? '').split('@').length > 2 || !URL.canParse(address)) {
    return `${STORE}, in which the password is percent-encoded`;
  }
  const mode = new URL(address).searchParams.get('sslmode');
  return mode === null || SSL_MODES.includes(mode) ? null : `sslmode to be one of ${SSL_MODES.join(', ')}`;
}

/**
 * Rules constrain keys that are set explicitly; a default adapts instead (`config.ts`). The first key is reported as
 * wrong. A rule runs if its own keys are valid, even if others are not, but never on a value that is not an object.
 */
export function section<Shape extends z.ZodRawShape>(
  shape: Shape,
  ...rules: Rule<z.output<z.ZodObject<Shape>>>[]
) {
  const schema = rules.reduce(
    (ruled, [keys, what, holds]) =>
      ruled.refine(holds as (section: object) => boolean, {
        path: keys.slice(0, 1),
        when: ({ issues }) => !issues.some(({ path }) => !path?.length || keys.includes(String(path[0]))),
        ...expected(what),
      }),
    z.strictObject(shape, expected('keys and values')),
  );
  return schema.prefault({} as never);
}

export function toolGroups() {
  const what = `a list of groups of tools: ${TOOL_GROUPS.join(', ')}`;
  return list(z.enum(TOOL_GROUPS, expected(what)), what);
}

/** The tool groups allowed in one chat or channel. */
export function allowance() {
  return z.strictObject({ allow: toolGroups() }, expected('allow, with a list of groups of tools'));
}

/** An MCP server: a child process or an address. */
export function mcpServer() {
  const names = () => list(text('the name of a tool'), 'a list of names of tools');
  const either = 'either command, with args, env and cwd, or url, with headers and oauth';
  return z
    .strictObject(
      {
        command: text('a command').optional(),
        args: list(z.string(expected('a text')), 'a list of arguments').optional(),
        env: z
          .record(z.string(), z.string(expected('a text')), expected('variables and their values'))
          .optional(),
        cwd: text('a folder').optional(),
        url: webAddress().optional(),
        headers: headers().optional(),
        oauth: z
          .strictObject(
            {
              issuer: webAddress(),
              client_id: text('the id of a client'),
              client_secret: text('a secret'),
              scope: text('a scope').optional(),
            },
            expected('issuer, client_id, client_secret and scope'),
          )
          .optional(),
        tools: names().optional(),
        safe: names().default([]),
        timeout_seconds: seconds().default(60),
      },
      expected(either),
    )
    .refine(({ command, args, env, cwd, url, headers, oauth }) => {
      const isProcess = command !== undefined && (url ?? headers ?? oauth) === undefined;
      return isProcess || (url !== undefined && (command ?? args ?? env ?? cwd) === undefined);
    }, expected(either));
}

export function ids() {
  return list(pattern('ids like telegram_-1001234567890', /^[a-z]+_[A-Za-z0-9._@%-]+$/), 'a list of ids');
}

export function bodyFields() {
  const what = 'fields of the request and their values';
  return z.record(z.string(), z.unknown(), expected(what)).superRefine((fields, context) => {
    for (const name of Object.keys(fields).filter((field) => OWN_FIELDS.includes(field))) {
      const message = `expected ${what}, and none that the gateway sets itself (${OWN_FIELDS.join(', ')})`;
      context.addIssue({ code: 'custom', path: [name], message });
    }
  });
}

export function headers() {
  const what = 'names of headers with a value of one line each';
  return z.record(z.string(), z.string(expected(what)), expected(what)).superRefine((named, context) => {
    for (const [name, value] of Object.entries(named)) {
      const isRight = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
      if (!isRight || OWN_HEADERS.includes(name.toLowerCase())) {
        context.addIssue({ code: 'custom', path: [name], message: `expected ${what}` });
      }
    }
  });
}

/** Request fields that the gateway sets: an operator's field of the same name would break every request. */
const OWN_FIELDS: readonly string[] = ['model', 'messages', 'input', 'tools', 'stream'];

/** Headers that operators may not set: with a wrong one, no request arrives. */
const OWN_HEADERS: readonly string[] = [
  'content-length',
  'content-type',
  'host',
  'transfer-encoding',
  'connection',
];
