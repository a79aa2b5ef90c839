/** The plan and the memory over HTTP. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Board } from '../../src/board/listener.js';
import { Fault } from '../../src/core/errors.js';
import type { Workspace } from '../../src/core/workspace.js';
import { startForTest } from './board-harness.js';
import { createWorkspace } from './stand-in.js';

let board: Board;
let workspace: Workspace;
beforeEach(async () => {
  workspace = createWorkspace();
  board = await startForTest({ workspace });
});
afterEach(() => board.close());

async function get(file: string) {
  const answer = await fetch(`${board.url}/api/workspace/${file}`);
  return { etag: answer.headers.get('etag') ?? '', ...((await answer.json()) as { content: string }) };
}

async function put(file: string, content: unknown, ifMatch?: string) {
  const answer = await fetch(`${board.url}/api/workspace/${file}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...(ifMatch !== undefined && { 'if-match': ifMatch }) },
    body: JSON.stringify({ content }),
  });
  const json = (await answer.json()) as { content?: string; error?: string; path?: string };
  return { status: answer.status, etag: answer.headers.get('etag'), ...json };
}

describe.each(['plan', 'memory'])('the %s', (file) => {
  it('is read with its tag, and written', async () => {
    const before = await get(file);
    expect(before).toEqual({ content: '', etag: expect.stringMatching(/^"[^"]+"$/) });
    const written = await put(file, '# Häuser\n');
    expect(written).toEqual({
      status: 200,
      content: '# Häuser\n',
      etag: expect.not.stringMatching(before.etag),
    });
    expect(await get(file)).toEqual({ content: '# Häuser\n', etag: written.etag });
  });

  it('is not written over what was changed meanwhile, unless one does not ask', async () => {
    const { etag } = await get(file);
    expect((await put(file, 'mine', etag)).status).toBe(200);
    const stale = await put(file, 'yours', etag);
    expect([stale.status, stale.etag]).toEqual([409, (await get(file)).etag]);
    expect((await get(file)).content).toBe('mine');
    for (const tag of ['nonsense', '""', '"', ',', etag.slice(1, -1)]) {
      expect((await put(file, 'yours', tag)).status, tag).toBe(409);
    }
    const now = await get(file);
    expect((await put(file, 'a', `"other", W/${now.etag}`)).status).toBe(200);
    expect((await put(file, 'b', '*')).status).toBe(200);
    expect((await put(file, 'c')).status).toBe(200);
  });

  it('edited by two at the same moment is the one of them, and the other is told', async () => {
    const { etag } = await get(file);
    const both = await Promise.all([put(file, 'one', etag), put(file, 'other', etag)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await get(file)).content).toBe(both.find(({ status }) => status === 200)?.content);
  });

  it('edited by a tool between the look and the write is left as the tool wrote it', async () => {
    await board.close();
    const racing: Workspace = {
      ...workspace,
      async read(which) {
        const before = await workspace.read(which);
        await workspace.write(which, 'the tool’s', null);
        return before;
      },
    };
    const { etag } = await workspace.read(file as 'plan');
    board = await startForTest({ workspace: racing });
    expect((await put(file, 'the board’s', `"${etag}"`)).status).toBe(409);
    expect((await workspace.read(file as 'plan')).content).toBe('the tool’s');
  });
});

describe('the workspace', () => {
  it('takes a plan in steps, and has it as a list', async () => {
    const steps = [
      { id: 's1', title: 'Look', status: 'completed' },
      { id: 's2', title: 'Leap', status: 'running' },
      { id: 's3', title: 'Land', status: 'pending' },
    ];
    const list =
      '# Over the ditch\n\n- [x] Look <!-- s1 -->\n- [ ] Leap (running) <!-- s2 -->\n- [ ] Land <!-- s3 -->\n';
    expect((await put('plan', { goal: 'Over the ditch', steps })).content).toBe(list);
    expect((await get('plan')).content).toBe(list);
    expect(await put('memory', { goal: 'x', steps })).toMatchObject({ status: 400, path: 'content' });
    expect(await put('plan', { goal: 'x', steps: [{ id: 7, title: 'y', status: 'z' }] })).toMatchObject({
      path: 'content.steps.0.id',
    });
  });

  it('has no other files', async () => {
    for (const file of ['AGENTS.md', '..%2fsecret', '%2e%2e/secret', 'plan/', '']) {
      expect((await fetch(`${board.url}/api/workspace/${file}`)).status).toBe(404);
    }
  });

  it('that cannot be read says so, and not why', async () => {
    await board.close();
    const read = async () => {
      throw new Fault('memory_unavailable', 'EACCES: /secret/place');
    };
    board = await startForTest({ workspace: { ...workspace, read } });
    const answer = await fetch(`${board.url}/api/workspace/plan`);
    expect([answer.status, await answer.text()]).toEqual([503, expect.not.stringContaining('secret')]);
  });
});
