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
  '- large (holds 400000 tokens, 1.25 for a million tokens read, 10 for a million written)',
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
      `gigantic is not among the models that can be chosen here.\n\n${LIST}`,
    );
    expect(await personaFile()).toBe(before);
    expect(await ask('/persona model default')).toBe(`Usage: /persona model NAME MODEL\n\n${LIST}`);
  });

  it('has the model itself where nothing is listed', async () => {
    on = await workbench();
    expect(await ask('/persona model default small')).toMatch(
      /not among .*\n\nThere are:\n- m \(the gateway’s\)$/s,
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
    const refused = /is not among the models that can be chosen here/;
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
  });
});
