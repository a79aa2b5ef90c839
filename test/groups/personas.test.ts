import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NO_PARTS } from '../../src/core/persona.js';
import { createPersonas } from '../../src/groups/personas.js';
import { NEW_MEMORY } from '../../src/groups/tiers.js';
import { groupsFolder, listeningLog } from './support.js';

const CHAT = 'terminal_local';
const NOW = Date.parse('2026-03-10T12:30:00Z');

async function setUp(files: Record<string, string> = {}) {
  const groups = await groupsFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(groups, path)), { recursive: true });
    await writeFile(join(groups, path), text);
  }
  const log = listeningLog();
  const personas = createPersonas({ groupsDir: groups, log, clock: { now: () => NOW } });
  const read = (path: string) => readFile(join(groups, path), 'utf8');
  return { groups, log, personas, read };
}

describe('default', () => {
  it('is there before its files are, and gets them at first contact, once', async () => {
    const { personas, read, groups } = await setUp();
    const bare = {
      id: 'default',
      name: 'default',
      model: null,
      temperature: null,
      avatar: null,
      voice: null,
      aliases: [],
      tools: null,
      from: null,
      character: '',
      greeting: null,
      ...{
        parts: NO_PARTS,
        card: null,
        trusted: false,
        guard: null,
        greetings: [],
        groupGreetings: [],
        talkativeness: null,
        portrait: null,
      },
    };
    expect(await personas.list(CHAT)).toEqual([bare]);
    expect(await personas.get(CHAT, 'default')).toEqual(bare);
    await Promise.all([personas.ensure(CHAT, 'default'), personas.ensure(CHAT, 'default')]);
    expect(await read(`${CHAT}/default/PERSONA.md`)).toBe('---\nname: default\n---\n');
    expect(await read(`${CHAT}/default/MEMORY.md`)).toBe(NEW_MEMORY);
    await writeFile(join(groups, CHAT, 'default', 'PERSONA.md'), '---\nname: Ada\n---\nCurious.\n');
    await personas.ensure(CHAT, 'default');
    expect(await personas.get(CHAT, 'default')).toMatchObject({ name: 'Ada', character: 'Curious.' });
  });

  it('takes all of its library file, also after first contact', async () => {
    const { personas } = await setUp({ 'personas/default.md': '---\nname: Ada\n---\nCurious.\n' });
    await personas.ensure(CHAT, 'default');
    expect(await personas.get(CHAT, 'default')).toMatchObject({ name: 'Ada', character: 'Curious.' });
  });

  it('can neither be made nor deleted', async () => {
    const { personas } = await setUp();
    expect((await personas.create(CHAT, 'Default', null)).ok).toBe(false);
    expect(await personas.remove(CHAT, 'default')).toEqual({
      ok: false,
      reason: 'The persona "default" is always here and cannot be deleted.',
    });
  });
});

describe('create', () => {
  it('makes a file with front matter only, and an empty memory', async () => {
    const { personas, read } = await setUp();
    expect(await personas.create(CHAT, ' Dr. Luna ', null)).toMatchObject({
      ok: true,
      persona: { id: 'dr-luna', name: 'Dr. Luna' },
    });
    expect(await read(`${CHAT}/dr-luna/PERSONA.md`)).toBe('---\nname: Dr. Luna\n---\n');
    expect(await read(`${CHAT}/dr-luna/MEMORY.md`)).toBe(NEW_MEMORY);
  });

  it('keeps to the folder of the chat, whatever the name', async () => {
    const { personas, groups } = await setUp();
    for (const [name, id] of [
      ['../x', 'x'],
      ['小月', '小月'],
      ['a/../../b', 'a-b'],
      [`yes: "no" #1\n---`, 'yes-no-1'],
    ] as const) {
      expect(await personas.create(CHAT, name, null)).toMatchObject({ ok: true, persona: { id } });
    }
    expect(await readdir(groups)).toEqual([CHAT]);
    expect((await readdir(join(groups, CHAT))).sort()).toEqual(['a-b', 'x', 'yes-no-1', '小月']);
    expect((await personas.get(CHAT, 'yes-no-1'))?.name).toBe('yes: "no" #1 ---');
  });

  it('refuses names that give no id, reserved ones and taken ones, in a sentence', async () => {
    const { personas } = await setUp();
    await personas.create(CHAT, 'Luna', null);
    for (const name of ['😀', '', '../..', 'memory', 'Archive', 'LUNA', 'ｌｕｎａ']) {
      const refused = await personas.create(CHAT, name, null);
      expect(refused, name).toMatchObject({ ok: false, reason: expect.stringMatching(/^[A-Z"].*\.$/) });
    }
    const long = await personas.create(CHAT, '😀'.repeat(1000), null);
    expect(long.ok ? '' : long.reason.length).toBeLessThan(250);
  });

  it('refuses names that cannot be read, are long, or read like another of the chat or the library', async () => {
    const { personas, groups } = await setUp({
      'personas/sage.md': '---\nname: Sage\naliases: [Teacher]\n---\nPatient.\n',
      [`${CHAT}/bear/PERSONA.md`]: '---\nname: Old Bear\naliases: [Bruin]\n---\n',
    });
    const asked = [
      ...[
        'd\u0435fault',
        '\uff24\uff45\uff46\uff41\uff55\uff4c\uff54',
        'defau1t',
        'de\u200bfault',
        'défault',
      ],
      ...[
        '0ld Bear',
        'OLD-BEAR!',
        'Bea\u0433',
        'Br\u057din',
        'S\u0430ge',
        'Te\u0430cher',
        '\u202eSaɡe\u202c',
      ],
      ...[
        ' ',
        '\u200b\u2060',
        '\u3164',
        '\u115f\uffa0',
        '\u2800',
        '\u0301\u0302',
        'a'.repeat(61),
        'Sage\u3164'.repeat(20),
      ],
    ];
    for (const name of asked) {
      // The library's own name makes that persona.
      expect(await personas.create(CHAT, name, null), JSON.stringify(name)).toMatchObject({
        ok: false,
        reason: expect.stringMatching(/^[A-Z"].{5,240}\.$/),
      });
    }
    expect(await readdir(join(groups, CHAT))).toEqual(['bear']);
    for (const name of [
      '李明',
      '李华',
      'नीला',
      'नाला',
      'سارا',
      'هارا',
      'Вера',
      'Бера',
      'a'.repeat(60),
      'Sage',
    ]) {
      expect(await personas.create(CHAT, name, null), name).toMatchObject({ ok: true });
    }
  });

  it('keeps a name to one line without marks that nobody sees, and out of the front matter', async () => {
    const { personas, read } = await setUp();
    const made = await personas.create(CHAT, 'Ann\u202e\u2028B\u0085\u001b[31m\u3164\nmodel: huge', null);
    expect(made).toMatchObject({ ok: true, persona: { name: 'Ann B [31m model: huge', model: null } });
    expect(await read(`${CHAT}/ann-b-31m-model-huge/PERSONA.md`)).toBe(
      '---\nname: "Ann B [31m model: huge"\n---\n',
    );
    expect(await personas.create(CHAT, '👩\u200d🚀 Ada', null)).toMatchObject({
      persona: { name: '👩\u200d🚀 Ada' },
    });
  });

  it.each(['می\u200cرود', 'അനില്\u200d', '❤\ufe0f Rose', '葛\u{e0100}城', 'ᠮᠣᠩᠭᠣᠯ\u180b'])(
    'keeps the joiners and variants of its writing: %s',
    async (name) => {
      const { personas } = await setUp();
      expect(await personas.create(CHAT, name, null)).toMatchObject({ ok: true, persona: { name } });
    },
  );

  it('makes as many in a chat as are allowed, in each', async () => {
    const groups = await groupsFolder();
    const options = { groupsDir: groups, log: listeningLog(), clock: { now: () => NOW }, mostInChat: 3 };
    const personas = createPersonas(options);
    for (const name of ['Luna', 'Max']) expect((await personas.create(CHAT, name, null)).ok).toBe(true);
    expect(await personas.create(CHAT, 'Zoe', null)).toEqual({
      ok: false,
      reason:
        'There are 3 personas here, which is as many as a chat may have; /persona delete NAME makes room.',
    });
    expect((await personas.create('test_2', 'Zoe', null)).ok).toBe(true);
    await personas.remove(CHAT, 'Max');
    expect((await personas.create(CHAT, 'Zoe', null)).ok).toBe(true);
  });

  it('leaves what was made by hand as it is, and warns once of two that read alike', async () => {
    const { personas, log } = await setUp({
      [`${CHAT}/luna/PERSONA.md`]: '---\nname: Luna\n---\n',
      [`${CHAT}/max/PERSONA.md`]: '---\nname: Max\naliases: [L\u056dna, Lun\u0430]\n---\n',
    });
    for (let n = 0; n < 3; n++)
      expect((await personas.list(CHAT)).map(({ id }) => id)).toEqual(['default', 'luna', 'max']);
    expect(log.warnings.map(({ fields }) => fields)).toEqual([{ chat: CHAT, personas: ['luna', 'max'] }]);
    expect(await personas.find(CHAT, 'Lun\u0430')).toMatchObject({ id: 'max' });
  });

  it('may be called as the library persona that it takes after says, whose file has another name', async () => {
    const { personas } = await setUp({
      'personas/garden-help.md': '---\nname: Gardener\n---\nA gardener.\n',
      'personas/other.md': '---\nname: Anna\n---\n',
    });
    expect(await personas.create(CHAT, 'Anna', 'garden-help')).toMatchObject({ ok: false });
    expect(await personas.create(CHAT, 'Gardener', null)).toMatchObject({ ok: false });
    expect(await personas.create(CHAT, 'Gardener', 'garden-help')).toMatchObject({
      ok: true,
      persona: { id: 'gardener', name: 'Gardener', character: 'A gardener.' },
    });
  });

  it('inherits from a library persona by another name', async () => {
    const { personas, read } = await setUp({
      'personas/sage.md':
        '---\nname: Sage\nmodel: big\ntemperature: 0.2\naliases: [teacher]\n---\nPatient.\n',
    });
    const made = await personas.create(CHAT, 'luna', 'Sage');
    expect(made).toMatchObject({
      ok: true,
      persona: {
        id: 'luna',
        name: 'luna',
        from: 'sage',
        model: 'big',
        temperature: 0.2,
        character: 'Patient.',
      },
    });
    expect(await read(`${CHAT}/luna/PERSONA.md`)).toBe('---\nname: luna\nfrom: sage\n---\n');
    expect(await personas.create(CHAT, 'x', '../AGENTS')).toEqual({
      ok: false,
      reason: 'There is no persona "../AGENTS" in the library. It holds: sage.',
    });
  });

  it('tells of a library persona that is not there, and of faults in either file, with the file', async () => {
    const { personas } = await setUp({
      'personas/sage.md': '---\ntemperature: warm\n---\n',
      [`${CHAT}/luna/PERSONA.md`]: '---\nfrom: nobody\n---\n',
      [`${CHAT}/max/PERSONA.md`]: '---\nfrom: sage\nvoice: [1]\n---\n',
      [`${CHAT}/iris/PERSONA.md`]: 'fine',
    });
    const faultsOf = async (id: string) => (await personas.get(CHAT, id))?.faults;
    expect(await faultsOf('luna')).toEqual([
      expect.stringMatching(/luna\/PERSONA\.md: "from" names "nobody", which is not in the library$/),
    ]);
    expect(await faultsOf('max')).toEqual([
      expect.stringMatching(/max\/PERSONA\.md: "voice" should/),
      expect.stringMatching(/personas\/sage\.md: "temperature" should/),
    ]);
    expect(await faultsOf('iris')).toBeUndefined();
  });

  it('gives its old memory back to a persona that is made again', async () => {
    const { personas, groups, read } = await setUp();
    await personas.create(CHAT, 'Luna', null);
    await writeFile(join(groups, CHAT, 'luna', 'MEMORY.md'), '## Tier 1\ntea\n');
    expect(await personas.remove(CHAT, 'luna')).toMatchObject({ ok: true });
    expect(await personas.get(CHAT, 'luna')).toBeNull();
    expect((await readdir(join(groups, CHAT, 'luna'))).sort()).toEqual([
      'MEMORY.md',
      'PERSONA.deleted-2026-03-10T12-30-00.000Z.md',
    ]);
    await personas.create(CHAT, 'Luna', null);
    expect(await read(`${CHAT}/luna/MEMORY.md`)).toBe('## Tier 1\ntea\n');
  });
});

describe('reading', () => {
  it('lists the folders with a PERSONA.md, default first', async () => {
    const { personas, groups } = await setUp({
      [`${CHAT}/zoe/PERSONA.md`]: '',
      [`${CHAT}/ada/PERSONA.md`]: 'Plain text.',
      [`${CHAT}/gone/MEMORY.md`]: '',
      [`${CHAT}/memory/PERSONA.md`]: '',
      [`${CHAT}/archive/PERSONA.md`]: '',
      [`${CHAT}/chat.yaml`]: 'title: x\n',
      [`${CHAT}/readme`]: '',
      [`${CHAT}/Capital/PERSONA.md`]: '',
    });
    expect((await personas.list(CHAT)).map((persona) => persona.id)).toEqual(['default', 'ada', 'zoe']);
    await rm(groups, { recursive: true });
    expect((await personas.list(CHAT)).map((persona) => persona.id)).toEqual(['default']);
  });

  it('takes from the library what the own file leaves out; own text replaces it', async () => {
    const { personas, groups } = await setUp({
      'personas/luna.md': '---\nname: Luna\nmodel: big\naliases: moon\n---\nDreamy.\n',
      [`${CHAT}/luna/PERSONA.md`]: '\uFEFF---\r\nname: luna\r\ntemperature: 0\r\n---\r\n\r\nWide awake.\r\n',
    });
    expect(await personas.get(CHAT, 'luna')).toEqual({
      id: 'luna',
      name: 'Luna',
      tools: null,
      model: 'big',
      temperature: 0,
      avatar: null,
      voice: null,
      aliases: ['moon'],
      from: null,
      character: 'Wide awake.',
      greeting: null,
      ...{
        parts: NO_PARTS,
        card: null,
        trusted: false,
        guard: null,
        greetings: [],
        groupGreetings: [],
        talkativeness: null,
        portrait: null,
      },
    });
    await writeFile(join(groups, 'personas/luna.md'), 'Plain.');
    expect(await personas.get(CHAT, 'luna')).toMatchObject({ name: 'luna', model: null, aliases: [] });
  });

  it('has a voice, its own or that of the library', async () => {
    const { personas } = await setUp({
      'personas/luna.md': '---\nvoice: nova\n---\n',
      [`${CHAT}/luna/PERSONA.md`]: '',
      [`${CHAT}/max/PERSONA.md`]: '---\nfrom: luna\nvoice: [1]\n---\n',
      [`${CHAT}/iris/PERSONA.md`]: '---\nfrom: luna\nvoice: onyx\n---\n',
    });
    const voiceOf = async (id: string) => (await personas.get(CHAT, id))?.voice;
    expect(await Promise.all(['luna', 'max', 'iris', 'default'].map(voiceOf))).toEqual([
      ...['nova', 'nova', 'onyx'],
      null,
    ]);
  });

  it('finds by id, name and alias, however it is written', async () => {
    const { personas } = await setUp({
      [`${CHAT}/luna/PERSONA.md`]: '---\nname: Frau Mond\naliases: [La Luna, 月]\n---\n',
      [`${CHAT}/mond/PERSONA.md`]: '',
    });
    for (const name of ['LUNA', 'ｌｕｎａ', '@luna', 'frau  mond', 'la-luna', '月']) {
      expect((await personas.find(CHAT, name))?.id, name).toBe('luna');
    }
    expect((await personas.find(CHAT, 'Mond'))?.id).toBe('mond');
    for (const name of ['', '😀', 'nobody', 'memory', '../luna/x']) {
      expect(await personas.find(CHAT, name), name).toBeNull();
    }
  });

  it('never throws for a broken file: what can be read counts, the operator is warned', async () => {
    const broken = {
      a: '---\nname: Ann\ntemperature: hot\nmodel: [x]\naliases: {a: b}\navatar: *nobody\n---\nKind.',
      b: '---\nname: "Bob\n---\nKind.',
      c: '---\njust words\n---\nKind.',
      d: '---\nname: Dan\nKind.',
    };
    const { personas, log, groups } = await setUp(
      Object.fromEntries(Object.entries(broken).map(([id, text]) => [`${CHAT}/${id}/PERSONA.md`, text])),
    );
    await mkdir(join(groups, CHAT, 'e', 'PERSONA.md'), { recursive: true });
    await mkdir(join(groups, CHAT, 'f'));
    await symlink('PERSONA.md', join(groups, CHAT, 'f', 'PERSONA.md'));
    const [, ...all] = await personas.list(CHAT);
    expect(all.map((persona) => persona.id)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(all[0]).toMatchObject({
      name: 'Ann',
      temperature: null,
      model: null,
      aliases: [],
      tools: null,
      character: 'Kind.',
    });
    expect(all[2]).toMatchObject({ name: 'c', character: 'Kind.' });
    expect(log.warnings).toHaveLength(6);
  });
});

describe('setModel', () => {
  it('changes that line and no other byte', async () => {
    const before =
      '---\r\n# mine\r\nname:   Luna # moon\r\nmodel: "old one"   # slow\r\nx: [1,\r\n  2]\r\n---\r\n\r\nmodel: y\r\n';
    const { personas, read } = await setUp({ [`${CHAT}/luna/PERSONA.md`]: before });
    expect(await personas.setModel(CHAT, 'Luna', ' gpt: 5 ')).toMatchObject({
      ok: true,
      persona: { model: 'gpt: 5' },
    });
    expect(await read(`${CHAT}/luna/PERSONA.md`)).toBe(before.replace('"old one"', '"gpt: 5"'));
  });

  it('adds the line where there is none, also for default', async () => {
    const { personas, read } = await setUp({
      [`${CHAT}/luna/PERSONA.md`]: 'Dreamy.\n',
      [`${CHAT}/zoe/PERSONA.md`]: '---\nname: Zoe\n---\nAwake.\n',
    });
    await personas.setModel(CHAT, 'luna', 'a/b:c');
    expect(await read(`${CHAT}/luna/PERSONA.md`)).toBe('---\nmodel: a/b:c\n---\nDreamy.\n');
    await personas.setModel(CHAT, 'zoe', '12');
    expect(await read(`${CHAT}/zoe/PERSONA.md`)).toBe('---\nname: Zoe\nmodel: "12"\n---\nAwake.\n');
    await personas.setModel(CHAT, 'default', 'big');
    expect(await read(`${CHAT}/default/PERSONA.md`)).toBe('---\nname: default\nmodel: big\n---\n');
  });

  it('keeps bytes that are no UTF-8', async () => {
    const { personas, groups } = await setUp({ [`${CHAT}/luna/PERSONA.md`]: '' });
    const file = join(groups, CHAT, 'luna', 'PERSONA.md');
    const character = Buffer.from([0xff, 0xc3, 0x0a]);
    await writeFile(file, Buffer.concat([Buffer.from('\uFEFF---\nname: Zoë\n---\n'), character]));
    await personas.setModel(CHAT, 'luna', 'größer');
    const edited = Buffer.from('\uFEFF---\nname: Zoë\nmodel: größer\n---\n');
    expect(await readFile(file)).toEqual(Buffer.concat([edited, character]));
  });

  it('leaves a front matter alone that it cannot read, and says so', async () => {
    const text = '---\nname: "Bob\nmodel: x\n---\n';
    const { personas, read } = await setUp({ [`${CHAT}/bob/PERSONA.md`]: text });
    expect((await personas.setModel(CHAT, 'bob', 'y')).ok).toBe(false);
    expect((await personas.setModel(CHAT, 'nobody', 'y')).ok).toBe(false);
    expect((await personas.setModel(CHAT, 'bob', ' ')).ok).toBe(false);
    expect(await read(`${CHAT}/bob/PERSONA.md`)).toBe(text);
  });
});

describe('what cannot be written', () => {
  it('is a fault that names the place', async () => {
    const { personas } = await setUp({ [CHAT]: 'a file' });
    await expect(personas.ensure(CHAT, 'default')).rejects.toMatchObject({ code: 'memory_unavailable' });
    await expect(personas.ensure('../x', 'default')).rejects.toThrow(/not the id of a chat/);
  });
});

describe('a persona with an account of its own', () => {
  it('comes to be where it is written to, named as in the library', async () => {
    const { personas, read } = await setUp({ 'personas/luna.md': '---\nname: Luna\n---\nOf the moon.\n' });
    expect(await personas.meet(CHAT, 'luna')).toBe(true);
    expect(await personas.get(CHAT, 'luna')).toMatchObject({ name: 'Luna', character: 'Of the moon.' });
    expect(await read(`${CHAT}/luna/MEMORY.md`)).toBe(NEW_MEMORY);
    expect(await personas.meet(CHAT, 'luna')).toBe(false);
    expect(await personas.meet(CHAT, 'max')).toBe(true);
    expect(await personas.get(CHAT, 'max')).toMatchObject({ name: 'max' });
  });

  it('does not come back where it was deleted, nor under a name that is none', async () => {
    const { personas } = await setUp();
    await personas.meet(CHAT, 'luna');
    await personas.remove(CHAT, 'luna');
    expect(await personas.meet(CHAT, 'luna')).toBe(false);
    expect(await personas.meet(CHAT, '../x')).toBe(false);
    expect(await personas.meet(CHAT, 'default')).toBe(false);
    expect((await personas.list(CHAT)).map(({ id }) => id)).toEqual(['default']);
  });
});
