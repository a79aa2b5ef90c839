/** What MCP servers write when they end, as their runtimes write it, and the line of it that says why. */
import { expect, test } from 'vitest';
import { reasonIn } from '../../src/mcp/stdio.js';

test.each<[string, string, string | null]>([
  ['nothing', '', null],
  ['blank lines', '\n  \n', null],
  ['a plain line', 'listening\nAPI_KEY is not set', 'API_KEY is not set'],
  [
    'Node, a module',
    `node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/tools.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2`,
    "Error: Cannot find module '/srv/tools.js'",
  ],
  [
    'Node, an error with a code and a cause',
    `/srv/tools.js:3
throw new Error('no key', { cause: new Error('x') })
^

TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string
    at main (/srv/tools.js:3:7) {
  [cause]: Error: x
      at main (/srv/tools.js:3:27)
}

Node.js v24.1.0`,
    'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string',
  ],
  [
    'Node, an error over several lines',
    `file:///srv/tools.js:9
ZodError: [
  {
    "code": "invalid_type",
    "message": "Required"
  }
]
    at parse (file:///srv/tools.js:9:1)

Node.js v22.0.0`,
    'ZodError: [ {',
  ],
  [
    'Python, errors in a row',
    `Traceback (most recent call last):
  File "/srv/server.py", line 2, in load
    import tomllib
ModuleNotFoundError: No module named 'tomllib'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 5, in <module>
    raise SystemError("give me a newer Python")
SystemError: give me a newer Python`,
    'SystemError: give me a newer Python',
  ],
  [
    'Python, an exit',
    'Traceback (most recent call last):\n  File "x", line 1\nKeyError: \'TOKEN\'',
    "KeyError: 'TOKEN'",
  ],
  [
    'npm, a package',
    `npm warn exec The following package was not found
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@x%2fno-such - Not found
npm error 404
npm error 404  '@x/no-such@*' is not in this registry.
npm error A complete log of this run can be found in: /root/.npm/_logs/x.log`,
    'npm error 404 Not Found - GET https://registry.npmjs.org/@x%2fno-such - Not found',
  ],
  [
    'Rust',
    `thread 'main' panicked at src/main.rs:4:5:
TOKEN must be set
note: run with \`RUST_BACKTRACE=1\` environment variable to display a backtrace`,
    "thread 'main' panicked at src/main.rs:4:5: TOKEN must be set",
  ],
  [
    'Go',
    `panic: open /etc/tools.json: permission denied

goroutine 1 [running]:
main.main()
	/srv/main.go:8 +0x1d
exit status 2`,
    'panic: open /etc/tools.json: permission denied',
  ],
  [
    'a shell',
    '/srv/start.sh: line 2: uvx: command not found',
    '/srv/start.sh: line 2: uvx: command not found',
  ],
  [
    'words behind the reason',
    'error: unable to open the database\nGoodbye.\nFor help see https://example.com',
    'error: unable to open the database',
  ],
  ['nothing but what stands beside one', '    at x (y:1:2)\nNode.js v20.20.2', 'Node.js v20.20.2'],
])('%s', (_name, written, reason) => {
  expect(reasonIn(written.split('\n'))).toBe(reason);
});
