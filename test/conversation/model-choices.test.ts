/** `/persona model`: what a persona may be given, by whom, and what is said of the rest. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const CHOICES: WorkbenchOptions = {
  settings: {
    choices: [
      { name: 'small' },
      { name: 'large', contextTokens: 400_000, inputPrice: 1.25, outputPrice: 10 },
    ],
  },
};

const LIST = [
  'There are:',
  '- m (the gateway’s)',
  '- small',
  '- large (holds 400000 tokens, 1.25 for a million input tokens, 10 for a million output tokens)',
].join('\n');

async function ask(text: string): Promise<string | undefined> {
  await on.say(text);
  await on.settled();
  return on.texts().at(-1);
}

const personaFile = () => readFile(join(on.folder, 'groups/test_1/default/PERSONA.md'), 'utf8');

describe('/persona model', () => {
  it.each(['small', 'large', 'm'])(
    'takes what the operator lists, and the model itself (%s)',
    async (model) => {
      on = await workbench(CHOICES);
      await ask('hi');
      expect(await ask(`/persona model default ${model}`)).toBe(`default now uses the model ${model}.`);
      await ask('and now?');
      expect(on.asked.at(-1)?.model).toBe(model);
    },
  );

  it('refuses everything else with the list, and changes nothing', async () => {
    on = await workbench(CHOICES);
    await ask('hi');
    const before = await personaFile();
    expect(await ask('/persona model default gigantic')).toBe(
      `gigantic is not one of the models you can choose here.\n\n${LIST}`,
    );
    expect(await personaFile()).toBe(before);
    expect(await ask('/persona model default')).toBe(`Usage: /persona model NAME MODEL\n\n${LIST}`);
  });

  it('has the model itself where nothing is listed', async () => {
    on = await workbench();
    expect(await ask('/persona model default small')).toMatch(
      /not one of .*\n\nThere are:\n- m \(the gateway’s\)$/s,
    );
  });

  it('is no other way in: not by a name with a line of front matter, not from a persona of the library', async () => {
    on = await workbench(CHOICES);
    await mkdir(join(on.folder, 'groups/personas'), { recursive: true });
    await writeFile(
      join(on.folder, 'groups/personas/sage.md'),
      '---\nname: Sage\nmodel: fine\n---\nPatient.\n',
    );
    await ask('/persona new "Luna\nmodel: gigantic"');
    await ask('hi');
    expect(on.asked.at(-1)?.model).toBeUndefined();
    await ask('/persona new Old Bear from sage');
    await ask('hi');
    // The operator chose it, in a file.
    expect(on.asked.at(-1)?.model).toBe('fine');
    const refused = /is not one of the models you can choose here/;
    expect(await ask('/persona model "Old Bear" gigantic')).toMatch(refused);
    expect(await ask('/persona model "Old Bear" "small\nmodel: gigantic"')).toMatch(refused);
    expect(await ask('/persona model "Old Bear" fine')).toMatch(refused);
    expect(await ask('/persona model "Old Bear" small')).toBe('Old Bear now uses the model small.');
    const file = await readFile(join(on.folder, 'groups/test_1/old-bear/PERSONA.md'), 'utf8');
    expect(file).toBe('---\nname: Old Bear\nfrom: sage\nmodel: small\n---\n');
  });

  it('takes any name from an owner', async () => {
    on = await workbench({ ...CHOICES, rules: { owners: ['test_1'] } });
    await ask('hi');
    expect(await ask('/persona model default gigantic')).toBe('default now uses the model gigantic.');
    await ask('and now?');
    expect(on.asked.at(-1)?.model).toBe('gigantic');
    const shared = '---\nname: default\ndescription: x\nmodel: sonnet\n---\n';
    await writeFile(join(on.folder, 'groups/test_1/default/PERSONA.md'), shared);
    await ask('/persona model default gigantic');
    await ask('and now?');
    expect(on.asked.at(-1)?.model).toBe('gigantic');
    expect(await personaFile()).toContain('model: gigantic\nany_model: true\n---\n');
  });
});

describe('a file that names a model', () => {
  const library = async (matter: string) => {
    await mkdir(join(on.folder, 'groups/personas'), { recursive: true });
    await writeFile(join(on.folder, 'groups/personas/default.md'), `---\n${matter}\n---\nx\n`);
  };

  it.each([
    ['model: sonnet', undefined],
    ['model: Opus[1m]', undefined],
    ['description: x\nmodel: claude-of-next-year', undefined],
    ['tools: Read\nmodel: claude-of-next-year', undefined],
    ['model: inherit', undefined],
    ['description: x\nmodel: large', 'large'],
    ['description: x\nmodel: m', 'm'],
    ['model: sonnet\nany_model: true', 'sonnet'],
    ['model: other', 'other'],
    ['model: [sonnet]', undefined],
  ])('%j', async (matter, model) => {
    on = await workbench(CHOICES);
    await library(matter);
    await ask('hi');
    expect(on.asked.at(-1)?.model).toBe(model);
  });

  it('is told to owners once, where it first comes into use', async () => {
    on = await workbench({ ...CHOICES, rules: { controlChats: ['test_1'], owners: ['test_1'] } });
    await ask('hi');
    await library('model: sonnet\ntools: Read, Write, Bash\ncolor: green');
    const told = () => on.texts().filter((text) => text.includes('cannot be used here'));
    expect(told()).toEqual([]);
    await ask('and now?');
    await ask('again');
    expect(told()).toEqual([
      expect.stringMatching(
        /^What a persona’s file says and cannot be used here:\n- .*personas\/default\.md: "tools" names "Read", "Write", "Bash".*counts as left out\n- .*default\.md: "model" names "sonnet".*model\.choices/,
      ),
    ]);
    await library('model: opus');
    await ask('and now?');
    expect(told()).toHaveLength(2);
  });
});
