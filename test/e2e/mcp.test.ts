/** Servers of tools in the real process: a persona uses one over each transport, and nothing of them is left behind. */
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { type Remote, startEverything } from '../fakes/mcp/remote.js';
import { type FakeModel, type FakeModelOptions, startFakeModel } from '../fakes/model.js';
import { eventually, type Home, makeHome, run } from '../harness/gateway.js';
import { EVERYTHING } from '../harness/mcp.js';

const FAKE = fileURLToPath(new URL('../fakes/mcp/server.mjs', import.meta.url));
const fake = (mode: string) => ({ command: process.execPath, args: [FAKE, mode] });

let home: Home;
let model: FakeModel;
let far: Remote | null = null;
afterEach(async () => {
  await model.close();
  await far?.close();
  far = null;
  await home.remove();
});

const many = (count: number) => ({ command: process.execPath, args: [FAKE, 'many', String(count)] });

async function configured(
  servers: object,
  allow = ['memory', 'mcp'],
  options: FakeModelOptions = {},
): Promise<void> {
  model = await startFakeModel(options);
  home = await makeHome({
    model: { base_url: model.url, name: 'scripted' },
    log: { format: 'json', level: 'info' },
    tools: { allow },
    mcp: { servers },
  });
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

it('a persona uses safe tools over each transport at once, whatever other servers do, and none is left behind', async () => {
  far = await startEverything();
  await configured({
    near: {
      command: process.execPath,
      args: [EVERYTHING],
      safe: ['echo', 'get-env'],
      env: { API_KEY: 'hush-hush' },
    },
    far: { url: far.url, safe: ['get-sum'] },
    broken: fake('ends-at-once'),
    hangs: fake('hang-initialize'),
    forks: fake('forks'),
  });
  const results: string[] = [];
  model.reply(({ messages, tools }) => {
    const told = messages.filter(({ role }) => role === 'tool');
    if (told.length > 0) {
      results.push(...told.map(({ content }) => content ?? ''));
      return 'all done';
    }
    const names = tools?.map((tool) => tool.function.name) ?? [];
    // On a machine that is busy with other things, three seconds may not do.
    if (!names.includes('mcp_near_echo') || !names.includes('mcp_far_get-sum')) return 'not yet';
    return {
      calls: [
        { name: 'mcp_near_echo', arguments: { message: 'through a pipe' } },
        { name: 'mcp_far_get-sum', arguments: { a: 40, b: 2 } },
        { name: 'mcp_near_get-env', arguments: {} },
      ],
    };
  });
  const chat = run(home, ['chat']);
  chat.write('use your tools\n');
  await chat.saw(/pids \d+ \d+/);
  const pids = (/pids (\d+) (\d+)/.exec(chat.err()) ?? []).slice(1).map(Number);
  for (let n = 1; !chat.out().includes('all done'); n += 1) {
    await eventually(() => (chat.out().match(/default: /g) ?? []).length >= n, `reply ${n}`);
    if (!chat.out().includes('all done')) chat.write('use your tools\n');
  }
  const ended = Date.now();
  chat.endInput();
  expect(await chat.exited).toBe(0);
  expect(Date.now() - ended).toBeLessThan(8_000);
  await eventually(() => !pids.some(isAlive), 'nothing is left behind');
  expect(results[0]).toContain('Echo: through a pipe');
  expect(results[1]).toContain('42');
  expect(results[2]).toContain('[redacted]');
  expect(chat.out() + chat.err() + results.join()).not.toContain('hush-hush');
});

it('doctor says of each server whether it can be used, and what to do', async () => {
  await configured(
    {
      plain: { ...fake('twins'), safe: ['twin', 'nonsense'] },
      broken: fake('ends-at-once'),
      away: { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: 'Bearer hush-hush' } },
    },
    ['memory'],
  );
  const doctor = run(home, ['doctor']);
  expect(await doctor.exited).toBe(1);
  const lines = doctor
    .out()
    .split('\n')
    .filter((line) => line.includes(' mcp '));
  expect(lines).toEqual([
    'ok      mcp plain: a process, revision 2025-11-25, 2 tools, 1 of them without approval',
    'warning mcp plain: a second tool named "twin" is left out',
    'warning mcp plain: the tool "a/b" is left out: another one is called mcp_plain_a_b too',
    'warning mcp plain: mcp.servers.plain.safe names nonsense, which it does not have',
    'warning mcp plain: no chat has its tools: add mcp to tools.allow, or to that of a chat',
    expect.stringMatching(
      /^failed {2}mcp broken: .*; start it by hand with the command of mcp\.servers\.broken/,
    ),
    expect.stringMatching(/^failed {2}mcp away: .*; look at url, headers and oauth of mcp\.servers\.away/),
  ]);
  expect(doctor.out()).not.toContain('hush-hush');
});

it('of more tools than a request may offer the last are left out, which owners and doctor are told', async () => {
  const servers = { one: many(60), two: many(60), three: many(60) };
  await configured(servers, ['memory', 'search', 'mcp'], {
    server: {
      name: 'OpenAI',
      // julep-ai/julep#330
      rules: ({ tools = [] }) =>
        tools.length <= 128
          ? null
          : {
              status: 400,
              body: {
                error: {
                  message: `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${tools.length} instead.`,
                  ...{ type: 'invalid_request_error', param: 'tools', code: 'array_above_max_length' },
                },
              },
            },
    },
    reply: ({ tools = [] }) => `${tools.length} tools`,
  });
  const chat = run(home, ['chat']);
  // On a machine that is busy with other things, not all of them are there at first.
  for (let n = 1; !chat.out().includes('default: 128 tools'); n += 1) {
    chat.write('how many?\n');
    await eventually(() => (chat.out().match(/default: /g) ?? []).length >= n, `reply ${n}`);
  }
  await chat.saw('There are more tools than the 128');
  chat.endInput();
  expect(await chat.exited).toBe(0);
  const offered = model.requests.at(-1)?.body.tools?.map((tool) => tool.function.name) ?? [];
  expect(offered.slice(0, 5)).toEqual([
    ...['read_tiered_memory', 'write_tiered_memory', 'read_memory', 'write_memory', 'search_memory'],
  ]);
  const by = (server: string) => offered.filter((name) => name.startsWith(`mcp_${server}_`)).length;
  expect([by('one'), by('two'), by('three')]).toEqual([60, 60, 3]);
  expect(model.requests.every(({ body }) => (body.tools?.length ?? 0) <= 128)).toBe(true);

  const doctor = run(home, ['doctor']);
  await doctor.exited;
  const [line = ''] = doctor
    .out()
    .split('\n')
    .filter((each) => each.includes(' tools: '));
  expect(line).toMatch(/^warning tools: one request offers 128 .*, so 57 are left out: mcp_three_/);
  const named = line.match(/mcp_three_[\w-]+/g) ?? [];
  expect(named).toHaveLength(57);
  expect(named.filter((name) => offered.includes(name))).toEqual([]);
});
