/** The tool that loads a skill: its instructions, where it lies, what lies beside it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolContext } from '../../src/core/tool.js';
import { createSkills } from '../../src/skills/skills.js';
import { activateSkill } from '../../src/tools/activate-skill.js';
import { askerWho } from '../harness/asker.js';
import { quietLog } from '../harness/quiet.js';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coterie-activate-'));
  await mkdir(join(home, 'pdf/scripts'), { recursive: true });
  await writeFile(
    join(home, 'pdf/SKILL.md'),
    '---\nname: pdf\ndescription: PDFs.\n---\nRun {baseDir}/scripts/a.py, not {baseDir}/b.\n',
  );
  await writeFile(join(home, 'pdf/scripts/a.py'), '');
});
afterEach(() => rm(home, { recursive: true, force: true }));

const context: ToolContext = {
  authorisation: {
    ...{
      chatId: 'telegram_1',
      personaId: 'luna',
      senderId: 'telegram_9',
      channel: 'telegram',
      controlChats: [],
    },
    asker: askerWho(),
  },
  ...{ room: 'telegram_1', turnId: 'turn7', callId: 'c1', log: quietLog, seen: new Map(), now: 0 },
  ...{ signal: new AbortController().signal, timezone: 'UTC' },
  cause: { kind: 'turn', personaId: 'luna', turnId: 'turn7' },
};
async function load(name: string, changes: Partial<ToolContext> = {}) {
  const host = { platform: 'linux', has: () => true, isSet: () => true };
  const tool = activateSkill(createSkills({ folder: home, ...host, log: quietLog }));
  const result = await tool.execute({ name }, { ...context, ...changes });
  if ('waitsFor' in result) throw new Error('the tool waits for something');
  return result;
}

it('gives the instructions with its folder in them, and names its files', async () => {
  const { content, failed, outside } = await load(' pdf ');
  const at = 'skills/pdf';
  expect(content).toBe(
    `# Skill: pdf\n\nIt lies in ${at}.\n\nIts files (read_file reads them):\n${at}/scripts/a.py\n\nRun ${at}/scripts/a.py, not ${at}/b.`,
  );
  // They are the operator's words.
  expect([failed, outside]).toEqual([false, undefined]);
});

it('names no link, nothing hidden, and no more than a hundred', async () => {
  await symlink('/etc/passwd', join(home, 'pdf/link'));
  await mkdir(join(home, 'pdf/.git'));
  await writeFile(join(home, 'pdf/.git/config'), '');
  await mkdir(join(home, 'pdf/node_modules'));
  await writeFile(join(home, 'pdf/node_modules/x.js'), '');
  expect((await load('pdf')).content).not.toMatch(/link|config|x\.js/);
  for (let n = 0; n < 120; n++) await writeFile(join(home, `pdf/f${n}`), '');
  const lines = (await load('pdf')).content.split('\n');
  expect(lines.filter((line) => /^skills\/pdf\/(f\d+|scripts\/a\.py)$/.test(line))).toHaveLength(100);
  expect(lines).toContain('…and more');
});

it('cuts instructions that no turn could hold, with a marker', async () => {
  const text = `---\nname: pdf\ndescription: PDFs.\n---\n${'word '.repeat(40_000)}`;
  await writeFile(join(home, 'pdf/SKILL.md'), text);
  expect((await load('pdf')).content).toMatch(/<<truncated due to tool-max-chars=64000>>$/);
});

describe('is refused', () => {
  it('for a name that is none, with those that are', async () => {
    for (const name of ['../pdf', 'pdf/../pdf', 'PDF', ''])
      expect(await load(name)).toMatchObject({
        failed: true,
        content: expect.stringMatching(/There are: pdf\.$/),
      });
  });

  it('without an authorisation', async () => {
    expect((await load('pdf', { authorisation: undefined })).content).toMatch(/^Permission denied/);
  });
});
