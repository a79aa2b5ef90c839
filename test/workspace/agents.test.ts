/** Agents on disk: their files, read for every task; their internal space, which they may write; their transcripts. */
import {
  appendFile,
  mkdir,
  readdir,
  readFile,
  realpath,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { noted } from '../../src/core/origin.js';
import { agentFindings } from '../../src/workspace/agent-file.js';
import { agentsOf, dataFolder } from './support.js';

const NEVER = new AbortController().signal;
const TODAY = '2026-11-23';

describe('an agent’s file', () => {
  it('is not needed for utility, which is there without any', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data);
    const found = await agents.find('Utility ');
    expect(found).toMatchObject({
      ok: true,
      agent: {
        id: 'utility',
        model: null,
        tools: ['files', 'shell', 'artifacts', 'skills'],
        maxRounds: null,
      },
    });
    expect(await agents.list()).toEqual(['utility']);
    expect(await readdir(data)).toEqual([]);
  });

  it('is read for every task, and may change utility in part', async () => {
    const { data, put } = await dataFolder();
    const agents = agentsOf(data);
    await put('agents/utility.yaml', 'model: small\nmax_rounds: 5\n');
    expect(await agents.find('utility')).toMatchObject({ agent: { model: 'small', maxRounds: 5 } });
    await put(
      'agents/utility.yaml',
      'prompt: Be brief.\ntools: [files, web]\ntimeout_minutes: 0.5\nmodel:\n',
    );
    expect(await agents.find('utility')).toEqual({
      ok: true,
      agent: {
        ...{ id: 'utility', model: null, prompt: 'Be brief.', tools: ['files', 'web'] },
        ...{ timeoutMinutes: 0.5, maxRounds: null },
      },
    });
    await put('agents/utility.yaml', '');
    expect(await agents.find('utility')).toMatchObject({ ok: true, agent: { model: null } });
  });

  it('is found whatever the letters’ case, as .yaml and as .yml; an unknown one is told which there are', async () => {
    const { data, put } = await dataFolder();
    await put('agents/Researcher.YML', 'prompt: You look things up.');
    await put('agents/writer.yaml', 'prompt: yaml');
    await put('agents/writer.yml', 'prompt: yml');
    await put('agents/.hidden.yaml', 'prompt: no');
    const agents = agentsOf(data);
    await put('agents/code_reviewer-2.x.yaml', 'prompt: You review.');
    expect(await agents.list()).toEqual(['Researcher', 'code_reviewer-2.x', 'utility', 'writer']);
    expect(await agents.find('RESEARCHER')).toMatchObject({ agent: { id: 'Researcher' } });
    expect(await agents.find('code_reviewer-2.x')).toMatchObject({ agent: { id: 'code_reviewer-2.x' } });
    expect(await agents.find('writer')).toMatchObject({ agent: { prompt: 'yaml' } });
    for (const id of ['nobody', '', '../utility', 'utility.yaml', '__proto__']) {
      const found = await agents.find(id);
      expect(found).toEqual({
        ok: false,
        reason: `There is no agent ${JSON.stringify(id)}; there are: Researcher, code_reviewer-2.x, utility, writer.`,
      });
    }
  });

  it.each([
    ['model: [a]', 'model: expected the name of a model'],
    ['prompt: 7', 'prompt: expected a text'],
    ['tools: files', 'tools: expected a list of groups of tools'],
    ['tools: [files, shel]', 'tools.1: expected groups of tools: memory, search, clipboard, files'],
    ['timeout_minutes: soon', 'timeout_minutes: expected a number of minutes'],
    ['timeout_minutes: -1', 'timeout_minutes: expected a number of minutes above 0'],
    ['timeout_minutes: .inf', 'timeout_minutes: expected'],
    ['max_rounds: 1.5', 'max_rounds: expected a whole number'],
    ['- a list', 'expected keys and values'],
    ['model: "unclosed', 'it is not YAML'],
    [
      'a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]',
      'the anchors in it cannot be resolved',
    ],
    ['x'.repeat(200_001), 'expected at most 200 kB'],
  ])('with a fault (%s) is told with file, key and what was expected', async (source, expected) => {
    const { data, put } = await dataFolder();
    await put('agents/broken.yaml', source);
    await put('agents/fine.yaml', 'model: m');
    const agents = agentsOf(data);
    const found = await agents.find('broken');
    expect(found).toMatchObject({ ok: false });
    expect(found.ok ? '' : found.reason).toMatch(/^The agent broken cannot be used: broken\.yaml: [^\n]*\.$/);
    expect(found.ok ? '' : found.reason).toContain(`broken.yaml: ${expected}`);
    // It stands in nobody else's way.
    expect(await agents.find('fine')).toMatchObject({ ok: true });
    expect(await agents.find('utility')).toMatchObject({ ok: true });
  });

  it('may be a folder, a link loop or have an impossible name: doctor names each', async () => {
    const { data, put } = await dataFolder();
    await mkdir(join(data, 'agents/folder.yaml'), { recursive: true });
    await symlink('loop.yaml', join(data, 'agents/loop.yaml'));
    await put('agents/two words.yaml', 'model: m');
    await put(
      'agents/fine.yaml',
      'modle: m\nmax_round:\nmodel:\ntools: [files, send, agents, schedules, reactions, export]\n',
    );
    await put('agents/fine.yml', 'model: m');
    await put('agents/Twice.yaml', 'model: m');
    await put('agents/twice.yaml', 'model: m');
    await put('agents/x.yaml.yaml', 'model: m');
    await put('agents/Utility.yaml', 'model: m');
    const { ids, findings } = await agentFindings(join(data, 'agents'));
    expect(ids).toEqual(['Twice', 'fine', 'folder', 'loop', 'utility']);
    expect(findings).toEqual([
      'fine.yml: it has no effect, for fine.yaml says what fine is.',
      'twice.yaml: it has no effect, for Twice.yaml says what Twice is.',
      expect.stringMatching(/^two words\.yaml: no agent can be called so/),
      expect.stringMatching(/^x\.yaml\.yaml: no agent can be called so/),
      'fine.yaml: modle: unknown key; did you mean model?',
      'fine.yaml: max_round: unknown key; did you mean max_rounds?',
      ...['send', 'agents', 'schedules', 'reactions', 'export'].map(
        (group) => `fine.yaml: tools: an agent never has ${group}; it is left out`,
      ),
      'folder.yaml: expected a file; move away what stands there.',
      'loop.yaml: it cannot be read (ELOOP).',
    ]);
    const agents = agentsOf(data);
    expect(await agents.find('fine')).toMatchObject({ ok: true, agent: { model: null, tools: ['files'] } });
    expect(agents.warnings.map(({ message }) => message)).toHaveLength(7);
  });
});

const sharedOf = (agent: string) => ({ agent, chatId: null });
const NOTHING = { longTerm: '', daily: '', origin: 'inside' };

describe('an internal space', () => {
  it('is made with an empty MEMORY.md and memories, for nobody else; what was Note.md becomes MEMORY.md', async () => {
    const { data, put } = await dataFolder();
    const agents = agentsOf(data);
    const space = await agents.space(sharedOf('utility'));
    expect((await readdir(space)).sort()).toEqual(['MEMORY.md', 'memories']);
    expect(await readFile(join(space, 'MEMORY.md'), 'utf8')).toBe('');
    expect((await stat(space)).mode & 0o777).toBe(0o700);
    expect(await agents.memory(sharedOf('utility'), TODAY)).toEqual(NOTHING);
    await put('agents/old/internal_space/Note.md', 'kept');
    expect((await agents.read(sharedOf('old'), 'MEMORY.md')).text).toBe('kept');
    for (const id of ['../x', 'a/b', '', '.x', '.', '..', 'x.yaml', 'x'.repeat(65)]) {
      await expect(agents.space(sharedOf(id))).rejects.toMatchObject({ code: 'memory_unavailable' });
    }
  });

  it('is shown within the budgets of seed 004, with its markers', async () => {
    const { data, put } = await dataFolder();
    const at = 'agents/utility/internal_space';
    await put(`${at}/MEMORY.md`, `${'m'.repeat(11_999)}😀`);
    await put(`${at}/memories/2026-11-23.md`, 'a'.repeat(4_001));
    await put(`${at}/memories/2026-11-22.md`, ' ');
    await put(`${at}/memories/2026-11-21.md`, 'c'.repeat(4_001));
    await put(`${at}/memories/2026-11-20.md`, 'too old');
    const agents = agentsOf(data);
    const { longTerm, daily } = await agents.memory(sharedOf('utility'), TODAY);
    expect(longTerm).toBe(
      `${'m'.repeat(11_999)}\n\n<<truncated due to internal-space-memory-max-chars=12000>>`,
    );
    const first = `--- 2026-11-23 ---\n${'a'.repeat(4_000)}\n\n<<truncated due to internal-space-daily-per-day-max-chars=4000>>\n\n--- 2026-11-21 ---\n`;
    expect(daily).toBe(
      `${(first + 'c'.repeat(4_000)).slice(0, 8_000)}\n\n<<truncated due to internal-space-daily-max-chars=8000>>`,
    );
    await put(`${at}/MEMORY.md`, ` ${'m'.repeat(12_000)}\n`);
    expect((await agents.memory(sharedOf('utility'), TODAY)).longTerm).toBe('m'.repeat(12_000));
  });

  it('says where it comes from, also where the end of a line that says so is cut off', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data);
    const own = { agent: 'utility', chatId: 'test_1' };
    await agents.append(own, TODAY, noted('x'.repeat(4_000), 'outside'), NEVER);
    expect(await agents.memory(own, TODAY)).toMatchObject({ origin: 'outside' });
    expect(await agents.read(own, { date: TODAY })).toMatchObject({ origin: 'outside' });
    expect(await agents.memory(sharedOf('utility'), TODAY)).toEqual(NOTHING);
    expect(await agents.space(own)).toBe(join(await realpath(data), 'agents/utility/chats/test_1'));
    for (const chatId of ['../x', '', '.', 'a/b'])
      await expect(agents.space({ agent: 'utility', chatId })).rejects.toThrow(/not the id of a chat/);
  });

  it('takes one line more a time, loses none of those that come together, and takes none twice', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data);
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        agents.append(sharedOf('utility'), TODAY, `line ${n}\nof two`, NEVER),
      ),
    );
    await agents.append(sharedOf('utility'), TODAY, 'line 3 of two', NEVER);
    const lines = (await agents.read(sharedOf('utility'), { date: TODAY })).text.trimEnd().split('\n');
    expect(lines.sort()).toEqual(Array.from({ length: 20 }, (_, n) => `line ${n} of two`).sort());
    await expect(agents.append(sharedOf('utility'), '../../x', 'x', NEVER)).rejects.toThrow(/not a day/);
    const over = AbortSignal.abort();
    await expect(agents.append(sharedOf('utility'), TODAY, 'late', over)).rejects.toThrow(/aborted/);
    expect((await agents.read(sharedOf('utility'), { date: TODAY })).text).not.toContain('late');
  });

  it('leads nowhere else, whatever links an agent puts into it', async () => {
    const { data, put } = await dataFolder();
    const secret = await put('secret.md', 'the secret');
    await put(`elsewhere/${TODAY}.md`, 'the secret');
    const space = 'agents/utility/internal_space';
    await mkdir(join(data, space), { recursive: true });
    await symlink(secret, join(data, space, 'MEMORY.md'));
    await symlink(join(data, 'elsewhere'), join(data, space, 'memories'));
    const agents = agentsOf(data);
    expect(await agents.memory(sharedOf('utility'), TODAY)).toEqual(NOTHING);
    await expect(agents.read(sharedOf('utility'), 'MEMORY.md')).rejects.toThrow(/leads out/);
    await expect(agents.read(sharedOf('utility'), { date: TODAY })).rejects.toThrow(/leads out/);
    await expect(agents.append(sharedOf('utility'), TODAY, 'x', NEVER)).rejects.toThrow(/leads out/);
    expect(await readFile(join(data, `elsewhere/${TODAY}.md`), 'utf8')).toBe('the secret');
  });

  it('is usable where folders stand for files and files for folders', async () => {
    const { data, put } = await dataFolder();
    await mkdir(join(data, 'agents/utility/internal_space/MEMORY.md'), { recursive: true });
    await put('agents/utility/internal_space/memories', 'a file');
    const agents = agentsOf(data);
    expect(await agents.memory(sharedOf('utility'), TODAY)).toEqual(NOTHING);
    expect(await agents.space(sharedOf('utility'))).toContain('internal_space');
    expect(agents.warnings.length).toBeGreaterThan(0);
    await put('agents/other', 'a file in the way');
    expect(await agents.memory(sharedOf('other'), TODAY)).toEqual(NOTHING);
    await agents.log('other', 's', [{ role: 'user', content: 'x', ts: 1 }]);
    expect(agents.warnings.at(-1)?.message).toContain('transcript');
  });
});

describe('a transcript', () => {
  it('is only added to, private, without secrets, and read without the lines that are broken', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data, (text) => text.replaceAll('sk-secret', '[redacted]'));
    await agents.log('utility', 'task-1', [{ role: 'user', content: 'a\nb\u2028 "c" sk-secret', ts: 1 }]);
    const path = join(data, 'agents/utility/sessions/task-1.jsonl');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(data, 'agents/utility/sessions'))).mode & 0o777).toBe(0o700);
    await appendFile(path, 'nonsense\n{"role":"king","content":"x","ts":1}\n{"role":"user","content":"cut o');
    await agents.log('utility', 'task-1', [{ role: 'assistant', content: 'done', ts: 2 }]);
    expect(await agents.session('utility', 'task-1')).toEqual([
      { role: 'user', content: 'a\nb\u2028 "c" [redacted]', ts: 1 },
      { role: 'assistant', content: 'done', ts: 2 },
    ]);
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(6);
    expect(await agents.session('utility', 'none')).toEqual([]);
  });

  it('lies in its folder whatever its name, and no two share one', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data);
    const names = [
      '../../x',
      '..',
      '',
      '/etc/passwd',
      'a:b',
      'a_b',
      'x'.repeat(500),
      `${'x'.repeat(500)}y`,
      'a\0b',
    ];
    for (const [ts, name] of names.entries()) {
      await agents.log('utility', name, [{ role: 'user', content: name, ts }]);
    }
    for (const [ts, name] of names.entries()) {
      expect(await agents.session('utility', name)).toEqual([{ role: 'user', content: name, ts }]);
    }
    expect(await readdir(join(data, 'agents/utility'))).toEqual(['sessions']);
    expect(await readdir(join(data, 'agents/utility/sessions'))).toHaveLength(names.length);
  });

  it('is not written through a link', async () => {
    const { data, put } = await dataFolder();
    const other = await put('other.txt', 'mine');
    await mkdir(join(data, 'agents/utility/sessions'), { recursive: true });
    await symlink(other, join(data, 'agents/utility/sessions/s.jsonl'));
    const agents = agentsOf(data);
    await agents.log('utility', 's', [{ role: 'user', content: 'x', ts: 1 }]);
    expect(await readFile(other, 'utf8')).toBe('mine');
    expect(agents.warnings).toHaveLength(1);
  });

  it('is read no further back than its newest 8 MB', async () => {
    const { data, put } = await dataFolder();
    const line = (content: string) => `${JSON.stringify({ role: 'user', content, ts: 1 })}\n`;
    await put('agents/utility/sessions/s.jsonl', line('old') + line('x'.repeat(8_000_000)) + line('new'));
    expect((await agentsOf(data).session('utility', 's')).map(({ content }) => content)).toEqual(['new']);
  });

  it('goes when nothing was added to it for longer than things are kept', async () => {
    const { data } = await dataFolder();
    const agents = agentsOf(data);
    for (const name of ['old', 'new'])
      await agents.log('utility', name, [{ role: 'user', content: 'x', ts: 1 }]);
    const folder = join(data, 'agents/utility/sessions');
    await utimes(join(folder, 'old.jsonl'), 1_000, 1_000);
    await writeFile(join(folder, 'notes.txt'), 'mine');
    await utimes(join(folder, 'notes.txt'), 1_000, 1_000);
    await agents.removeSessions(2_000_000, NEVER);
    expect((await readdir(folder)).sort()).toEqual(['new.jsonl', 'notes.txt']);
  });
});
