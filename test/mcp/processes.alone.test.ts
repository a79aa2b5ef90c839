/** Servers of tools that are processes: the reference servers, and ours that do what no server should. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { resultOf } from '../../src/mcp/results.js';
import { createRedactor } from '../../src/operating/redact.js';
import { eventually } from '../harness/gateway.js';
import {
  callTool,
  EVERYTHING,
  FILESYSTEM,
  fakeServer,
  type McpBench,
  mcpBench,
  processServer,
} from '../harness/mcp.js';

let bench: McpBench;
let folder: string | null = null;
afterEach(async () => {
  await bench?.stop();
  if (folder) await rm(folder, { recursive: true });
  folder = null;
});

async function open(...parameters: Parameters<typeof mcpBench>): Promise<McpBench> {
  bench = mcpBench(...parameters);
  await bench.until(() => bench.tools().length > 0, 'tools are there');
  return bench;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const logged = (words: RegExp) => bench.lines.filter((line) => words.test(JSON.stringify(line)));

describe('the reference servers', () => {
  it('are used side by side: named, with a risk each, checked, called, ended', async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-mcp-'));
    await writeFile(join(folder, 'note.txt'), 'the shopping list');
    bench = mcpBench([
      processServer('everything', [EVERYTHING], { safe: ['echo'], env: { GREETING: 'hello' } }),
      processServer('files', [FILESYSTEM, folder], {
        tools: ['read_text_file', 'list_directory', 'nonsense'],
        safe: ['list_directory'],
      }),
    ]);
    await bench.ready([], new AbortController().signal);
    await bench.until(() => bench.tools().length > 13, 'both are there');
    expect(bench.names()).toEqual(
      expect.arrayContaining(['mcp_everything_echo', 'mcp_files_read_text_file']),
    );
    expect(bench.names().filter((name) => name.startsWith('mcp_files_'))).toEqual([
      'mcp_files_read_text_file',
      'mcp_files_list_directory',
    ]);
    const risk = (name: string) => bench.tool(name).risk;
    expect([risk('mcp_everything_echo'), risk('mcp_everything_get-sum')]).toEqual(['medium', 'high']);
    expect([risk('mcp_files_list_directory'), risk('mcp_files_read_text_file')]).toEqual(['medium', 'high']);
    expect(bench.tools().every((tool) => tool.isFromOutside)).toBe(true);
    expect(logged(/tools names nonsense, which it does not have/)).toHaveLength(1);

    expect(await bench.call('mcp_everything_echo', { message: 'hi' })).toEqual({
      content: 'Echo: hi',
      failed: false,
    });
    expect((await bench.call('mcp_everything_get-sum', { a: 2, b: 3 })).content).toContain('5');
    expect((await bench.call('mcp_everything_echo', { massage: 'hi' })).content).toContain(
      'message: is missing',
    );
    expect((await bench.call('mcp_everything_get-tiny-image')).content).toContain(
      '[A picture (image/png), 4 kB, which is not shown here]',
    );
    const seen = Object.keys(JSON.parse((await bench.call('mcp_everything_get-env')).content));
    expect(seen.sort()).toEqual(['GREETING', 'HOME', 'PATH']);
    const read = await bench.call('mcp_files_read_text_file', { path: join(folder, 'note.txt') });
    expect(read.content).toContain('the shopping list');
    const outside = await bench.call('mcp_files_read_text_file', { path: '/etc/passwd' });
    expect(outside).toMatchObject({ failed: true, content: expect.stringContaining('Access denied') });
    const before = bench.tools();
    expect(bench.tools()).toBe(before);
  });
});

describe('a server that', () => {
  it('hangs at the beginning delays the first turn a little, and neither a later one nor the end', async () => {
    bench = mcpBench([fakeServer('hang-initialize'), fakeServer('plain')]);
    const begun = Date.now();
    await bench.ready([], new AbortController().signal);
    expect(Date.now() - begun).toBeLessThan(4_000);
    expect(bench.names()).toEqual(['mcp_plain_go']);
    const again = Date.now();
    await bench.ready([], new AbortController().signal);
    expect(Date.now() - again).toBeLessThan(100);
    await bench.stop();
    expect(Date.now() - again).toBeLessThan(5_000);
  });

  it('hangs in a call leaves the outcome unknown, and hears that nobody waits any more', async () => {
    await open([fakeServer('hang-call', { timeoutMs: 300 })]);
    const result = await bench.call('mcp_hang-call_go', { text: 'now' });
    expect(result.failed).toBe(true);
    expect(result.content).toMatch(
      /did not answer within 0.3 s, so whether the call was carried out is unknown/,
    );
    await bench.until(() => logged(/cancelled \d/).length > 0, 'it heard of it');
  });

  it('hangs in a call is left as soon as the turn is stopped', async () => {
    await open([fakeServer('hang-call')]);
    const stop = new AbortController();
    const result = bench.call('mcp_hang-call_go', { text: 'now' }, stop.signal);
    await bench.until(() => logged(/called now/).length > 0, 'it has the call');
    stop.abort();
    expect((await result).failed).toBe(true);
    await bench.until(() => logged(/cancelled \d/).length > 0, 'it heard of it');
  });

  it('dies in a call leaves the outcome unknown, and is there again for the next', async () => {
    await open([fakeServer('die-call')]);
    const offered = bench.tool('mcp_die-call_go');
    const result = await bench.call('mcp_die-call_go');
    expect(result).toMatchObject({ failed: true, content: expect.stringContaining('is unknown') });
    expect(bench.tool('mcp_die-call_go')).toBe(offered);
    // The next calls do not wait for the pauses to be over, which would be seven seconds.
    const begun = Date.now();
    for (let n = 0; n < 3; n += 1) {
      expect((await bench.call('mcp_die-call_go')).content).toContain('is unknown');
    }
    expect(Date.now() - begun).toBeLessThan(5_000);
    expect(logged(/MCP server exited/)).toHaveLength(4);
  });

  it('ends at once, again and again, is said once', async () => {
    bench = mcpBench([fakeServer('ends-at-once')]);
    await bench.ready([], new AbortController().signal);
    await bench.until(() => logged(/MCP server exited/).length >= 2, 'it was tried again');
    expect(bench.tools()).toEqual([]);
    expect(logged(/unavailable; retrying/)).toHaveLength(1);
  });

  it('cannot even be started is said, and the others are there', async () => {
    bench = mcpBench([
      { ...fakeServer('nowhere'), command: 'no-such-program-anywhere' },
      fakeServer('plain'),
    ]);
    await bench.ready([], new AbortController().signal);
    await bench.until(() => bench.tools().length > 0, 'the other is there');
    expect(logged(/unavailable.*ENOENT|ENOENT.*unavailable/)).toHaveLength(1);
  });

  it('returns 10 MB loses its connection, the model hears why, and it is there again', async () => {
    await open([fakeServer('large')]);
    const { content, failed } = await bench.call('mcp_large_go');
    expect(failed).toBe(true);
    expect(content).toMatch(/answer was larger than 4\.0 MB, so it was cut off.*is unknown.*Ask for less/);
    await bench.until(() => logged(/MCP server connected/).length === 2, 'it was started again');
    expect(logged(/MCP connection closed/)).toHaveLength(1);
  });

  it('changes its tools: another turn has them; what changed asks a person; what is gone says so', async () => {
    await open([fakeServer('changes', { safe: ['pet', 'change'] })]);
    const before = bench.tools();
    const signal = new AbortController().signal;
    const gone = bench.tool('mcp_changes_gone');
    const pet = bench.tool('mcp_changes_pet');
    expect(pet.risk).toBe('medium');
    await bench.call('mcp_changes_change');
    await bench.until(() => bench.tools() !== before, 'the list is another');
    expect(bench.names()).toEqual(['mcp_changes_change', 'mcp_changes_pet']);
    // A list that a turn has stays as it is.
    expect(before.map(({ name }) => name)).toContain('mcp_changes_gone');
    expect((await callTool(gone, {}, signal)).content).toBe(
      'The server no longer has this tool. Nothing was done.',
    );
    expect((await callTool(pet, {}, signal)).content).toMatch(
      /has changed this tool since it was offered.*Nothing was done/,
    );
    expect(bench.tool('mcp_changes_pet').risk).toBe('high');
    expect(bench.tool('mcp_changes_change').risk).toBe('medium');
    // For an agent, what nobody has called safe leaves the machine.
    expect(bench.tool('mcp_changes_pet').isExternal).toBe(true);
    expect(bench.tool('mcp_changes_change').isExternal).toBeUndefined();
    expect(logged(/MCP tool changed/)).toHaveLength(1);
    expect((await bench.call('mcp_changes_pet')).content).toBe('did pet');
  });

  it('has other tools at each listing, is asked less and less, and is remembered in part', async () => {
    const began = Date.now();
    const pauses: number[] = [];
    /** A thousand times as quick, and it notes how long it would have been. */
    const clock = {
      ...systemClock,
      sleep(ms: number, signal?: AbortSignal) {
        if (ms >= 1_000) pauses.push(ms);
        return systemClock.sleep(ms >= 60_000 ? 20 : ms / 1_000, signal ?? new AbortController().signal);
      },
    };
    bench = mcpBench([fakeServer('new-names')], [], clock);
    await bench.until(() => pauses.length > 30, 'it was listed often');
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(Math.max(...pauses)).toBe(600_000);
    expect(bench.names().length).toBeLessThanOrEqual(85);
    expect(logged(/its name has 200\d\d\d characters/).length).toBeLessThan(41);
    expect(logged(/1000 tools of different names since the start/).length).toBeLessThanOrEqual(1);
    expect(logged(/MCP server: /).length).toBeLessThanOrEqual(40);
    expect(JSON.stringify(bench.lines).length).toBeLessThan(100_000);
  });

  it('changes its tools, and speaks the stateless revision, is subscribed to', async () => {
    await open([fakeServer('stateless-changes')]);
    await bench.call('mcp_stateless-changes_change');
    await bench.until(() => bench.tools().length === 2, 'the list is another');
  });

  it('offers two of the same name, or names that become the same, has the first of them', async () => {
    await open([fakeServer('twins')]);
    expect(bench.names()).toEqual(['mcp_twins_twin', 'mcp_twins_a_b']);
    expect(bench.tool('mcp_twins_twin').description).toContain('the first');
    expect(logged(/a second tool named \\"twin\\" is left out/)).toHaveLength(1);
    expect(logged(/\\"a\/b\\" is left out: another one is called mcp_twins_a_b too/)).toHaveLength(1);
  });

  it('has the name of another’s tool does not get it', async () => {
    bench = mcpBench([
      { ...fakeServer('twins'), name: 'a.b' },
      { ...fakeServer('twins'), name: 'a/b' },
    ]);
    await bench.until(() => logged(/MCP server connected/).length >= 2, 'both are connected');
    const names = bench.names();
    expect(names).toEqual(['mcp_a_b_twin', 'mcp_a_b_a_b']);
    expect(logged(/MCP tool left out: a[./]b has one of this name/)).toHaveLength(2);
  });

  it('asks for sampling, input and folders gets nothing, which is said once', async () => {
    await open([fakeServer('samples')]);
    expect((await bench.call('mcp_samples_go')).content).toBe('-32601,-32601,-32601');
    await bench.call('mcp_samples_go');
    expect(logged(/MCP server request refused/).map(({ asked }) => asked)).toEqual([
      'sampling/createMessage',
      'elicitation/create',
      'roots/list',
    ]);
  });

  it('writes garbage between its messages is understood all the same', async () => {
    await open([fakeServer('garbage')]);
    expect((await bench.call('mcp_garbage_go')).content).toBe('went away');
    const garbage = logged(/a line that is not a message/);
    expect(garbage.map(({ line }) => line)).toContain('Welcome to my server!');
    expect(JSON.stringify(bench.lines)).not.toContain('\\u001b');
  });

  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'speaks the revision %s is used',
    async (revision) => {
      await open([fakeServer('old', {}, revision)]);
      expect((await bench.call('mcp_old_go', { text: 'well' })).content).toBe('went well');
      expect(logged(/MCP server connected/)[0]).toMatchObject({ revision });
    },
  );

  it('ends when it is asked what it does not know is asked as of old', async () => {
    await open([fakeServer('dies-when-probed')]);
    expect((await bench.call('mcp_dies-when-probed_go')).content).toBe('went away');
  });

  it('speaks the stateless revision is used, and what it wants in return it does not get', async () => {
    await open([fakeServer('stateless'), fakeServer('stateless-asks')]);
    await bench.until(() => bench.tools().length === 2, 'both are there');
    expect((await bench.call('mcp_stateless_go', { text: 'well' })).content).toBe('went well');
    expect(logged(/MCP server connected/)[0]).toMatchObject({ revision: '2026-07-28' });
    expect(await bench.call('mcp_stateless-asks_go')).toMatchObject({
      failed: true,
      content: expect.stringMatching(/asked for something in return/),
    });
  });

  it('has odd names has those that can be told apart', async () => {
    await open([fakeServer('odd-names')]);
    const names = bench.names();
    expect(names.slice(0, 2)).toEqual(['mcp_odd-names_get_weather_now', 'mcp_odd-names___31mred']);
    expect(names).toHaveLength(4);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect((await callTool(bench.tools()[0] as never, {}, new AbortController().signal)).content).toBe(
      'went away',
    );
    expect(logged(/a tool without a name is left out/)).toHaveLength(1);
  });

  it('describes itself with 1 MB that orders the model about is quoted, and cut', async () => {
    await open([fakeServer('long-description')]);
    const { description, hint } = bench.tool('mcp_long-description_shout');
    expect(description).toMatch(
      /^A tool of the server "long-description", which is no part of this gateway\./,
    );
    expect(description.length).toBeLessThan(4_500);
    const [, ...quoted] = description.split('\n');
    const cut = quoted.indexOf('');
    for (const line of quoted.slice(0, cut)) expect(line).toMatch(/^> /);
    expect(quoted.slice(cut + 1)).toEqual(['<<truncated due to mcp-description-max-chars=4000>>']);
    expect(description).not.toContain('</user_message>');
    expect(description).not.toContain('\u001b');
    expect(hint).toBe('a tool of the server "long-description"');
  });

  it('has schemas that cannot be used has its other tools', async () => {
    await open([fakeServer('bad-schemas')]);
    expect(bench.names()).toEqual(['mcp_bad-schemas_good']);
    for (const reason of [
      /remote.*refers to another document/,
      /none.*is no object/,
      /list.*not that of an object/,
      /huge.*longer than 32000 characters/,
      /deep.*nested too deeply/,
    ]) {
      expect(logged(reason)).toHaveLength(1);
    }
  });

  it('has pages without end is read so far, and no further', async () => {
    await open([fakeServer('endless-pages')]);
    expect(bench.names()).toHaveLength(50);
  });

  it('answers with anything but text is told in words', async () => {
    await open([fakeServer('odd-results')]);
    const results: unknown[] = [];
    for (let n = 0; n < 7; n += 1) results.push((await bench.call('mcp_odd-results_go')).content);
    expect(results).toEqual([
      'Done; nothing was said.',
      '[A picture (image/png), 3 kB, which is not shown here]\n\n[A sound (audio/wav), 3 bytes, which is not shown here]',
      '[The resource "file:///a", 297 bytes, which is not shown here]\n\n[The resource "file:///b":]\ninside',
      'it broke',
      '{"n":7}',
      expect.stringContaining('cannot be read'),
      'ab[31mcd',
    ]);
  });

  it('floods us with messages does not starve anything, and is still heard', async () => {
    await open([fakeServer('floods')]);
    expect((await bench.call('mcp_floods_go')).content).toBe('flooding');
    let longest = 0;
    let last = performance.now();
    const used = process.cpuUsage();
    const until = performance.now() + 1_000;
    while (performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }
    const { user, system } = process.cpuUsage(used);
    expect(longest).toBeLessThan(300);
    expect((user + system) / 1_000).toBeLessThan(500);
    expect(bench.lines.length).toBeLessThan(100);
  });

  it('shows what it sees sees nothing of ours, and its secrets do not come back', async () => {
    process.env.COTERIE_TEST_ONLY = 'ours';
    await open(
      [fakeServer('leaks', { env: { API_KEY: 'very-secret-key', LANG: 'C' } })],
      ['very-secret-key'],
    );
    delete process.env.COTERIE_TEST_ONLY;
    const { content } = await bench.call('mcp_leaks_go');
    expect(content).toBe('my key is [redacted]; all I see: API_KEY,HOME,LANG,PATH');
    expect(JSON.stringify(bench.lines)).not.toContain('very-secret-key');
  });

  it('says a secret where its words are cut leaves no half of it', async () => {
    await open([fakeServer('hang-call', { timeoutMs: 300 })], ['very-secret-key']);
    await bench.call('mcp_hang-call_go', { text: `${'x'.repeat(280)}very-secret-key` });
    await bench.until(() => logged(/called x/).length > 0, 'it said so');
    expect(JSON.stringify(bench.lines)).not.toContain('very-sec');
    const text = `${'x'.repeat(59_990)}very-secret-key`;
    const { content } = resultOf({ content: [{ type: 'text', text }] }, createRedactor(['very-secret-key']));
    expect(content).not.toContain('very-sec');
  });

  it('forks, and ignores every kind word, is ended with all that it has started', async () => {
    await open([fakeServer('forks')]);
    await bench.until(() => logged(/pids \d/).length > 0, 'it said who it is');
    const [, own, forked] = /pids (\d+) (\d+)/.exec(JSON.stringify(logged(/pids/))) ?? [];
    const pids = [Number(own), Number(forked)];
    expect(pids.map(isAlive)).toEqual([true, true]);
    const begun = Date.now();
    await bench.stop();
    expect(Date.now() - begun).toBeLessThan(5_000);
    await eventually(() => !pids.some(isAlive), 'both are gone');
  });
});
