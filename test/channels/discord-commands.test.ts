import { describe, expect, test } from 'vitest';
import { discordOptions } from '../../src/channels/discord/options.js';
import { applicationCommands, beingTyped, choices, typedForm } from '../../src/channels/discord/outbound.js';
import { COMMAND_NAMES, COMMANDS } from '../../src/conversation/commands/list.js';

describe('the commands as Discord’s own', () => {
  const all = applicationCommands(COMMANDS);

  test('every name and alias is one, as Discord takes them, but for its own /me', () => {
    const ours = [...COMMAND_NAMES].filter((name) => name !== 'me').sort();
    expect(all.map(({ name }) => name).sort()).toEqual(ours);
    for (const { name, description, contexts } of all) {
      expect(name).toMatch(/^[-_a-z0-9]{1,32}$/);
      expect(Array.from(description).length).toBeLessThanOrEqual(100);
      expect(description).not.toBe('');
      expect(contexts).toEqual([0, 1]);
    }
  });

  test('words that an argument may begin with are subcommands, and names of personas are suggested', () => {
    const persona = all.find(({ name }) => name === 'persona');
    expect(persona?.options).toContainEqual({
      type: 1,
      name: 'switch',
      description: 'Talk with another persona',
      options: [
        {
          type: 3,
          name: 'name',
          description: 'The persona’s name; put names with spaces in quotes',
          required: true,
          autocomplete: true,
        },
      ],
    });
    expect(persona?.options).toContainEqual({
      type: 1,
      name: 'list',
      description: 'List the personas of this chat',
    });
  });

  test('a card has a field of its own, which is no word of the command', () => {
    const [persona] = all.filter(({ name }) => name === 'persona');
    const found = (persona?.options as { name: string }[] | undefined)?.find(({ name }) => name === 'import');
    expect(found).toMatchObject({
      options: [
        { type: 3, required: false },
        { type: 11, name: 'file' },
      ],
    });
    const options = [
      { name: 'file', type: 11, value: '123' },
      { name: 'name', type: 3, value: 'Ida' },
    ];
    const given = { name: 'persona', options: [{ name: 'import', type: 1, options }] };
    expect(typedForm(given as Parameters<typeof typedForm>[0])).toBe('/persona import Ida');
  });

  test('any other takes a text, which may be left out', () => {
    const [command] = applicationCommands([{ name: 'ask', aliases: [], description: 'x'.repeat(200) }]);
    expect(command).toMatchObject({ options: [{ type: 3, name: 'text', required: false }] });
    expect(command?.description).toBe(`${'x'.repeat(99)}…`);
  });
});

describe('back to what would have been typed', () => {
  test.each([
    [{ name: 'reset' }, '/reset'],
    [{ name: 'reset', options: [] }, '/reset'],
    [{ name: 'help', options: [{ name: 'text', type: 3, value: ' persona ' }] }, '/help persona'],
    [{ name: 'persona', options: [{ name: 'list', type: 1, options: [] }] }, '/persona list'],
    [{ name: 'persona', options: [{ name: 'list', type: 1 }] }, '/persona list'],
    [
      { name: 'persona', options: [{ name: 'switch', options: [{ name: 'name', value: '"Luna B"' }] }] },
      '/persona switch "Luna B"',
    ],
    [
      { name: 'persona', options: [{ name: 'new', options: [{ name: 'name', value: 'Luna from Muse' }] }] },
      '/persona new Luna from Muse',
    ],
    [
      { name: 'memory', options: [{ name: 'forget', options: [{ name: 'text', value: 5 }] }] },
      '/memory forget 5',
    ],
  ])('%j', (data, text) => {
    expect(typedForm(data as Parameters<typeof typedForm>[0])).toBe(text);
  });
});

describe('suggestions', () => {
  const names = ['default', 'Luna', 'Luna B', 'Stella', 'Big "Moe"', ' '];

  test('go with what is being typed, those that begin with it first', () => {
    expect(choices(names, '').map(({ name }) => name)).toEqual([
      'default',
      'Luna',
      'Luna B',
      'Stella',
      'Big "Moe"',
    ]);
    expect(choices(names, 'L').map(({ name }) => name)).toEqual(['Luna', 'Luna B', 'default', 'Stella']);
    expect(choices(names, '"luna b').map(({ name }) => name)).toEqual(['Luna B']);
    expect(choices(names, 'xyz')).toEqual([]);
  });
  test('put a name of several words into quotes', () => {
    expect(choices(names, 'luna b')).toEqual([{ name: 'Luna B', value: '"Luna B"' }]);
    expect(choices(names, 'moe')).toEqual([{ name: 'Big "Moe"', value: 'Big "Moe"' }]);
  });
  test('are no more, and no longer, than Discord takes', () => {
    const many = Array.from({ length: 60 }, (_, n) => `Persona ${n}`);
    expect(choices([...many, 'P'.repeat(101)], 'p')).toHaveLength(25);
    expect(choices(['P'.repeat(101)], 'p')).toEqual([]);
  });
  test('are for the option that is being typed', () => {
    const option = { name: 'name', value: 'Lu', focused: true };
    expect(beingTyped({ name: 'persona', options: [{ name: 'switch', options: [option] }] } as never)).toBe(
      'Lu',
    );
    expect(beingTyped({ name: 'persona', options: [option] } as never)).toBe('Lu');
    expect(beingTyped({ name: 'persona' } as never)).toBeNull();
  });
});

describe('options', () => {
  test('defaults, and what is put right', () => {
    expect(discordOptions.parse({ token: ' Bot abc.def.ghi ' })).toEqual({
      token: 'abc.def.ghi',
      api_root: 'https://discord.com/api',
      bots: false,
      faces: 'always',
      shards: 'auto',
      messages_per_second: 50,
      per_chat_burst: 5,
    });
    const given = {
      token: 'x',
      api_root: 'http://127.0.0.1:1/api//',
      bots: 'true',
      messages_per_second: '2.5',
      shards: '3',
    };
    expect(discordOptions.parse(given)).toMatchObject({
      api_root: 'http://127.0.0.1:1/api',
      bots: true,
      messages_per_second: 2.5,
      shards: 3,
    });
  });
  test.each([
    [{}, 'token', 'but it is missing'],
    [{ token: 'se cret' }, 'token', "a bot's token"],
    [{ token: 'x', api_root: 'discord.com' }, 'api_root', 'https://discord.com/api'],
    [{ token: 'x', bots: 'perhaps' }, 'bots', 'true or false'],
    [{ token: 'x', shards: 0 }, 'shards', 'a whole number from 1 to 1000'],
    [{ token: 'x', shards: 'many' }, 'shards', 'auto, or a whole number'],
    [{ token: 'x', messages_per_second: 0 }, 'messages_per_second', 'above 0'],
    [{ token: 'x', per_chat_burst: 'many' }, 'per_chat_burst', 'above 0'],
  ])('%j', (given, key, words) => {
    const issues = discordOptions.safeParse(given).error?.issues ?? [];
    expect(issues.map(({ path }) => path.join('.'))).toContain(key);
    const told = issues.map(({ message }) => message).join();
    expect(told).toContain(words);
    expect(told).not.toContain('cret');
  });
});
