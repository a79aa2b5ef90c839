/** Servers of tools over streamable HTTP: the reference server, and one of ours that misbehaves. */
import { afterEach, describe, expect, it } from 'vitest';
import { type Remote, type RemoteMode, startEverything, startRemote } from '../fakes/mcp/remote.js';
import { type McpBench, mcpBench, remoteServer } from '../harness/mcp.js';
import { page, serve } from '../tools/web/support.js';

let bench: McpBench;
let remotes: Remote[] = [];
afterEach(async () => {
  await bench.stop();
  for (const remote of remotes) await remote.close();
  remotes = [];
});

const logged = (words: RegExp) => bench.lines.filter((line) => words.test(JSON.stringify(line)));

async function start(mode: RemoteMode, more: Parameters<typeof remoteServer>[2] = {}) {
  const remote = await startRemote(mode);
  remotes.push(remote);
  bench = mcpBench([remoteServer('far', remote.url, more)], ['the-key-of-all-keys']);
  await bench.ready([], new AbortController().signal);
  return remote;
}

it('the reference server is used, also after it was away', async () => {
  const first = await startEverything();
  remotes.push(first);
  bench = mcpBench([remoteServer('everything', first.url, { safe: ['echo'] })]);
  await bench.until(() => bench.tools().length > 0, 'tools are there');
  expect(bench.tool('mcp_everything_echo').risk).toBe('medium');
  expect(await bench.call('mcp_everything_echo', { message: 'hi' })).toEqual({
    content: 'Echo: hi',
    failed: false,
  });
  const running = bench.call('mcp_everything_trigger-long-running-operation', { duration: 20, steps: 20 });
  await first.close();
  expect(await running).toMatchObject({ failed: true, content: expect.stringMatching(/is unknown/) });
  remotes = [await startEverything(Number(new URL(first.url).port))];
  // It may have been tried in vain meanwhile: a call does not wait for the next time.
  await bench.until(
    async () => !(await bench.call('mcp_everything_echo', { message: 'again' })).failed,
    'it is used again',
  );
});

describe('a server over HTTP that', () => {
  it('speaks the stateless revision is used, with the headers of the configuration', async () => {
    const remote = await start('stateless', { headers: { Authorization: 'Bearer the-key-of-all-keys' } });
    const { content } = await bench.call('mcp_far_go');
    expect(content).toMatch(/^went, with (Bearer )?\[redacted\]$/);
    expect(remote.seen.every(({ authorization }) => authorization === 'Bearer the-key-of-all-keys')).toBe(
      true,
    );
    expect(logged(/MCP server connected/)[0]).toMatchObject({ revision: '2026-07-28' });
    expect(JSON.stringify(bench.lines)).not.toContain('the-key-of-all-keys');
  });

  it.each(['large json', 'large events'] as const)(
    'returns 10 MB (%s) loses its connection, and the model hears why',
    async (mode) => {
      await start(mode);
      const { content, failed } = await bench.call('mcp_far_go');
      expect(failed).toBe(true);
      expect(content).toMatch(/answer was larger than 4\.0 MB, so it was cut off.*is unknown.*Ask for less/);
      await bench.until(() => logged(/MCP server connected/).length === 2, 'it is connected again');
    },
  );

  it('hangs in a call leaves the outcome unknown', async () => {
    await start('hangs', { timeoutMs: 300 });
    const { content, failed } = await bench.call('mcp_far_go');
    expect([failed, content]).toEqual([
      true,
      expect.stringMatching(/did not answer within 0.3 s.*is unknown/),
    ]);
  });

  it('fails leaves the outcome unknown', async () => {
    await start('fails');
    expect((await bench.call('mcp_far_go')).content).toMatch(/answered with the error 500.*is unknown/);
  });

  it('has forgotten us is asked anew', async () => {
    const remote = await start('forgets sessions');
    expect((await bench.call('mcp_far_go')).content).toMatch(
      /has forgotten this connection\. Nothing was done; call again/,
    );
    expect((await bench.call('mcp_far_go')).content).toMatch(/^went/);
    expect(remote.calls.count()).toBe(2);
  });

  it('lets nobody in is said, without our key', async () => {
    await start('lets nobody in', { headers: { 'X-Api-Key': 'the-key-of-all-keys' } });
    expect(bench.tools()).toEqual([]);
    expect(logged(/unavailable; retrying/)).toHaveLength(1);
    expect(JSON.stringify(bench.lines)).not.toContain('the-key-of-all-keys');
  });

  it('sends us elsewhere does not get our key there', async () => {
    await start('moves away', { headers: { 'X-Api-Key': 'the-key-of-all-keys' } });
    expect(bench.tools()).toEqual([]);
    expect(logged(/unavailable; retrying/)).toHaveLength(1);
  });

  it('wants a login gets one for the client of the configuration', async () => {
    const remote = await startRemote('wants a login');
    remotes.push(remote);
    const oauth = {
      issuer: new URL(remote.url).origin,
      clientId: 'coterie',
      clientSecret: 'hush',
      scope: 'tools',
    };
    bench = mcpBench([remoteServer('far', remote.url, { oauth })], ['hush']);
    await bench.until(() => bench.tools().length > 0, 'it lets us in');
    expect((await bench.call('mcp_far_go')).content).toMatch(/^went/);
    const basic = Buffer.from('coterie:hush').toString('base64');
    expect(remote.logins).toEqual([expect.stringContaining(`Basic ${basic} grant_type=client_credentials`)]);
  });

  it.each<[RemoteMode, string[]]>([
    ['names metadata elsewhere', []],
    ['names metadata elsewhere', ['127.0.0.1']],
    ['names a login elsewhere', []],
    ['names a login elsewhere', ['127.0.0.1']],
  ])('%s sends us only where pages may be fetched from (%j)', async (mode, allowed) => {
    const beside = await serve(page('application/json', '{}'));
    const remote = await startRemote(mode);
    remotes.push(remote);
    remote.elsewhere = beside.url;
    const oauth = { issuer: new URL(remote.url).origin, clientId: 'coterie', clientSecret: 'hush' };
    bench = mcpBench([remoteServer('far', remote.url, { oauth })], ['hush'], undefined, allowed);
    await bench.ready([], new AbortController().signal);
    expect(bench.tools()).toEqual([]);
    if (allowed.length === 0) expect(beside.asked).toEqual([]);
    else expect(beside.asked).not.toEqual([]);
  });

  it('names another issuer does not get the secret', async () => {
    const remote = await startRemote('wants a login');
    remotes.push(remote);
    const oauth = { issuer: 'https://login.example.com', clientId: 'coterie', clientSecret: 'hush' };
    bench = mcpBench([remoteServer('far', remote.url, { oauth })], ['hush']);
    await bench.ready([], new AbortController().signal);
    expect(bench.tools()).toEqual([]);
    expect(remote.logins).toEqual([]);
    expect(logged(/unavailable; retrying/)).toHaveLength(1);
  });
});
