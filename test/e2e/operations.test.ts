/** The real program where something around it is not as it should be, and what it shows of its environment. */
import { spawn } from 'node:child_process';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, test } from 'vitest';
import { describeWithBubblewrap } from '../harness/bubblewrap.js';
import { eventually, type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

describe('a value of the environment', () => {
  const VALUES = {
    PART: 'kräftig + "quoted" \\ 50%',
    MODEL_SHORT: 'm-7',
    OWNER_NUMBER: '4917012345678',
    FOLDER: 'where-memory-lies',
    HOST_THERE: 'nas-of-the-family.example',
    TOKEN_OF_TOOLS: 'tok-4711-abcdef',
  };
  const forms = (value: string) => {
    const whole = Buffer.from(value);
    const json = JSON.stringify(value).slice(1, -1);
    return [value, json, JSON.stringify(json).slice(1, -1), encodeURIComponent(value)].concat(
      [new URLSearchParams([['', value]]).toString().slice(1), encodeURIComponent(value).toLowerCase()],
      [whole.toString('base64').replace(/=*$/, ''), whole.toString('base64url')],
    );
  };

  it('is seen in no line of the log and in no entry of the audit log, whatever its key', async () => {
    // Says whatever it was given, in every form.
    const echo = `for (const word of process.argv.slice(1)) console.error(word);
      process.stdin.resume();`;
    const said = Object.values(VALUES).flatMap((value) => (value.length < 6 ? [] : forms(value)));
    const taken = (name: string) => `\${${name}}`;
    home = await makeHome({
      log: { format: 'json', level: 'debug' },
      board: { port: 0 },
      groups_dir: `./${taken('FOLDER')}`,
      model: { base_url: 'http://127.0.0.1:9/v1', name: taken('MODEL_SHORT'), choices: [taken('PART')] },
      access: { owners: [`whatsapp_${taken('OWNER_NUMBER')}`] },
      tools: { allow: ['mcp'], web: { allow_hosts: [taken('HOST_THERE')] } },
      mcp: {
        servers: {
          echo: {
            command: process.execPath,
            args: ['-e', echo, taken('TOKEN_OF_TOOLS'), ...said.map((word) => word.replaceAll('${', '$${'))],
          },
        },
      },
    });
    const running = run(home, ['start'], VALUES);
    await running.saw('coterie is up');
    await eventually(
      () => running.err().split('MCP server wrote to standard error').length > said.length,
      'all is said',
    );
    expect(await running.stop('SIGHUP')).toBe(0);
    const audit = (await home.read('data/audit.jsonl')) ?? '';
    expect(audit).toContain('"configuration"');
    for (const line of running.err().trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    for (const [name, value] of Object.entries(VALUES)) {
      if (value.length < 6) continue;
      for (const form of forms(value)) {
        expect(running.err(), `${name} in the log`).not.toContain(form);
        expect(audit, `${name} in the audit log`).not.toContain(form);
      }
    }
    // A short one is no secret that could be cut out of words, but its key does not show it.
    expect(audit).not.toContain('m-7');
    expect(audit).toMatch(/"model\.name":"secret [\da-f]{8}"/);
  });
});

describe('a stop', () => {
  it.each(['start', 'chat'])('by SIGHUP is one like any other: %s', async (command) => {
    home = await makeHome({ log: { format: 'json', level: 'info' }, board: { port: 0 } });
    const running = run(home, [command]);
    await running.saw('coterie is up');
    expect(await running.stop('SIGHUP')).toBe(0);
    expect(running.err()).toContain('accepted messages are safe');
  });
});

describe('a native module for another Node', () => {
  const PRELOAD = new URL('../harness/other-node.mjs', import.meta.url).href;
  const environment = (name: string) => ({ NODE_OPTIONS: `--import=${PRELOAD}`, OTHER_NODE: name });

  it.each(['start', 'chat', 'doctor', 'pair list'])(
    'is named first by %s, with what to do',
    async (command) => {
      home = await makeHome({ board: { port: 0 } });
      const running = run(home, command.split(' '), environment('better_sqlite3'));
      running.endInput();
      expect(await running.exited).not.toBe(0);
      const words =
        /better-sqlite3 was built for another version of Node \(its NODE_MODULE_VERSION is 93.*"npm rebuild better-sqlite3"/;
      const [first, second] = `${running.err()}${running.out()}`.split('\n');
      expect(command === 'doctor' ? second : first).toMatch(words);
    },
  );

  it('of pictures is named by doctor', async () => {
    home = await makeHome({});
    const running = run(home, ['doctor'], environment('sharp'));
    await running.exited;
    expect(running.out()).toMatch(/^failed +native modules: sharp .*"npm rebuild sharp"/m);
  });
});

describe('a folder that cannot be written', () => {
  const command = (...args: string[]) => [join(import.meta.dirname, '../../dist/main.js'), ...args];

  async function ended(program: string, args: string[], options: object = {}): Promise<string> {
    const child = spawn(program, args, { cwd: home.folder, ...options });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    await new Promise((resolve) => child.once('close', resolve));
    return said;
  }

  async function stranger(closed: 'data' | 'groups', words: string): Promise<string> {
    home = await makeHome({ board: { port: 0 } });
    const folder = join(home.folder, closed);
    await mkdir(folder);
    const open = join(home.folder, closed === 'data' ? 'groups' : 'data');
    await mkdir(open);
    await chmod(open, 0o777);
    await chmod(home.folder, 0o755);
    await chmod(folder, 0o555);
    // Whoever is root writes everywhere.
    const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    return ended(process.execPath, command(words), user);
  }

  test.each([
    ['data', 'start'],
    ['data', 'doctor'],
    ['groups', 'start'],
    ['groups', 'doctor'],
  ] as const)('by its user: %s is named by %s', async (folder, words) => {
    expect(await stranger(folder, words)).toMatch(
      new RegExp(`${folder}_dir \\(.*/${folder}\\) is read-only, or closed, for the user .*\\(uid \\d+\\)`),
    );
  });

  describeWithBubblewrap('by its file system', () => {
    test.each(['start', 'doctor'])('is called read-only by %s', async (words) => {
      home = await makeHome({ board: { port: 0 } });
      await mkdir(join(home.folder, 'data'));
      await mkdir(join(home.folder, 'groups'));
      const inside = [
        '--dev-bind',
        '/',
        '/',
        '--ro-bind',
        join(home.folder, 'groups'),
        join(home.folder, 'groups'),
      ];
      const said = await ended('bwrap', [...inside, process.execPath, ...command(words)]);
      expect(said).toMatch(/groups_dir \(.*\/groups\) is read-only: its file system is mounted so/);
    });
  });
});

it('doctor quotes the line with which a server of tools ended', async () => {
  const crash = `console.error('starting');
    console.error('MY_TOKEN=' + process.argv[1]);
    require('/no/such/module-of-tools');`;
  home = await makeHome({
    mcp: {
      servers: {
        broken: { command: process.execPath, args: ['-e', crash] },
        colourful: { command: 'sh', args: ['-c', "printf '\\033[31mError: no key\\033[0m\\n' >&2; exit 4"] },
        // It takes nothing from us before it ends.
        killed: {
          command: 'sh',
          args: ['-c', 'exec 0<&-; echo "Error: no room" >&2; sleep 0.3; kill -9 $$'],
        },
      },
    },
  });
  const checked = run(home, ['doctor']);
  expect(await checked.exited).toBe(1);
  expect(checked.out()).toMatch(
    /^failed +mcp broken: .*it ended with the code 1; it said: Error: Cannot find module '\/no\/such\/module-of-tools'/m,
  );
  expect(checked.out()).toMatch(
    /^failed +mcp colourful: .*it ended with the code 4; it said: Error: no key;/m,
  );
  expect(checked.out()).toMatch(/^failed +mcp killed: .*it ended with SIGKILL; it said: Error: no room;/m);
});
