/** Each format's reader, with exports of all forms that are known. */
import { describe, expect, test } from 'vitest';
import { createZone } from '../../../src/core/dates.js';
import { sentAt } from '../../../src/importing/histories/formats.js';
import { wallClock } from '../../../src/importing/histories/history.js';
import { BERLIN, fileOf, itemsOf, readOf, told, zipOf } from './support.js';

const json = JSON.stringify;

describe('Telegram', () => {
  const message = (id: number, more: object) => ({
    id,
    type: 'message',
    date: '2021-03-01T10:00:00',
    date_unixtime: '1614592800',
    from: 'Anna Berg',
    from_id: 'user111',
    text: '',
    ...more,
  });
  const chat = {
    name: 'Luna Bot',
    type: 'bot_chat',
    id: 222,
    messages: [
      { id: 1, type: 'service', date: '2021-03-01T09:59:00', actor: 'Anna Berg', text: '' },
      message(2, { text: 'Good evening' }),
      message(3, {
        from: 'Luna Bot',
        from_id: 'user222',
        text: ['See ', { type: 'bold', text: 'this' }, '!'],
      }),
      message(4, { text: '', text_entities: [{ type: 'plain', text: 'newer form' }] }),
      message(5, { from: null, from_id: 333, date_unixtime: undefined, text: 'gone' }),
      message(6, { photo: 'photos/1.jpg', width: 1, height: 1 }),
      message(7, { photo: '(File not included.)', text: 'with words' }),
      message(8, { forwarded_from: 'Some\nbody', text: 'news' }),
      message(9, { poll: { question: 'Tea?', answers: [] } }),
      message(10, { text: 'no time', date: 'soon', date_unixtime: undefined }),
      message(11, {}),
    ],
  };

  test('one chat: both forms of text, both of time, a deleted account, the bot', async () => {
    const { messages, left } = await readOf('result.json', json(chat, null, 1));
    expect(told(messages)).toEqual([
      '2021-03-01T10:00:00 | Anna Berg | Good evening',
      '2021-03-01T10:00:00 | Luna Bot | persona | See this!',
      '2021-03-01T10:00:00 | Anna Berg | newer form',
      // Without its time in UTC, it is of the zone.
      '2021-03-01T09:00:00 | Deleted account | gone',
      '2021-03-01T10:00:00 | Anna Berg | with words',
      '2021-03-01T10:00:00 | Anna Berg | [forwarded from Some body] news',
      '2021-03-01T10:00:00 | Anna Berg | [poll] Tea?',
    ]);
    expect(left.sort()).toEqual([
      'lines of the program itself',
      'media without words',
      'messages without a readable time',
      'messages without words',
    ]);
    expect(new Set(messages.map(({ key }) => key)).size).toBe(messages.length);
  });

  test('a whole account names its chats, also those without a name', async () => {
    const account = {
      about: 'Here is the data you requested.',
      personal_information: { first_name: 'Anna' },
      contacts: { list: [{ first_name: 'messages' }] },
      chats: {
        about: 'x',
        list: [
          { name: 'Family', type: 'private_group', id: 9, messages: [message(1, { text: 'a' })] },
          { type: 'saved_messages', id: 8, messages: [message(1, { text: 'b' })] },
          { name: null, type: 'personal_chat', id: 7, messages: [] },
        ],
      },
      left_chats: {
        list: [{ name: 'Old', type: 'private_group', id: 6, messages: [message(1, { text: 'c' })] }],
      },
    };
    const { items, messages } = await readOf('result.json', json(account));
    const chats = items.flatMap((item) => (item.kind === 'chat' ? [`${item.chat} ${item.id}`] : []));
    expect(chats).toEqual(['Family 9', 'Saved Messages 8', 'chat 7 7', 'Old 6']);
    expect(messages.map((each) => `${each.chat}: ${each.text}`)).toEqual([
      'Family: a',
      'Saved Messages: b',
      'Old: c',
    ]);
    expect(new Set(messages.map(({ key }) => key)).size).toBe(3);
  });
});

describe('WhatsApp', () => {
  test('Android: system lines, media, several lines, the second equal message of a minute', async () => {
    const { messages, left } = await readOf(
      'WhatsApp Chat with Ben.txt',
      [
        '1/13/23, 7:01\u202fPM - Messages and calls are end-to-end encrypted. Tap to learn more.',
        '1/13/23, 7:02\u202fPM - ~\u00a0Ben: first',
        'and its second line',
        '1/13/23, 7:02\u202fPM - Anna: ok',
        '1/13/23, 7:02\u202fPM - Anna: ok',
        '1/13/23, 7:03\u202fPM - Anna: <Media omitted>',
        '1/13/23, 7:03\u202fPM - Anna: IMG-20230113-WA0001.jpg (file attached)\nlook at this',
        '1/13/23, 7:04\u202fPM - Anna: This message was deleted',
        '1/13/23, 7:05\u202fPM - Anna changed the subject from “a: b” to “c: d”',
        '1/14/23, 12:00\u202fAM - +49\u00a0171\u00a0555: midnight <This message was edited>',
        '1/14/23, 12:00\u202fPM - Anna: noon: at last',
        '',
      ].join('\n'),
    );
    expect(told(messages)).toEqual([
      '2023-01-13T18:02:00 | ~ Ben | first\nand its second line',
      '2023-01-13T18:02:00 | Anna | ok',
      '2023-01-13T18:02:00 | Anna | ok',
      '2023-01-13T18:03:00 | Anna | look at this',
      '2023-01-13T23:00:00 | +49 171 555 | midnight',
      '2023-01-14T11:00:00 | Anna | noon: at last',
    ]);
    expect(new Set(messages.map(({ key }) => key)).size).toBe(6);
    expect(left).toEqual([
      'lines of the program itself',
      'media without words',
      'deleted messages',
      'lines of the program itself',
    ]);
  });

  test('iOS, in its zip: brackets, seconds, marks, and a line that looks like Android’s', async () => {
    const text = [
      '\u200e[31/12/2022, 11:40:26] Ben: \u200eMessages and calls are end-to-end encrypted.',
      '[31/12/2022, 11:40:27] Ben: happy',
      '1/1/23, 7:02 PM - Anna: pasted',
      '\u200e[31/12/2022, 11:41:00] Anna: look \u200e<attached: 00000001-PHOTO.jpg>',
      '\u200e[31/12/2022, 11:42:00] Anna: \u200eimage omitted',
    ].join('\r\n');
    const { messages, left } = await readOf('chat.zip', zipOf({ '_chat.txt': text, '1-PHOTO.jpg': 'x' }));
    expect(told(messages)).toEqual([
      '2022-12-31T10:40:27 | Ben | happy\n1/1/23, 7:02 PM - Anna: pasted',
      '2022-12-31T10:41:00 | Anna | look',
    ]);
    expect(left).toEqual(['media without words', 'media without words']);
  });

  test.each([
    ['dots', '31.12.22, 23:59 - Anna: x', '2022-12-31T22:59:00'],
    ['dashes', '31-12-2022 23:59 - Anna: x', '2022-12-31T22:59:00'],
    ['a point in the time', '31/12/22 23.59 - Anna: x', '2022-12-31T22:59:00'],
    ['Spanish halves', '31/12/22, 11:59 p.\u00a0m. - Anna: x', '2022-12-31T22:59:00'],
    ['year first, Chinese halves', '2022/12/31 下午11:59 - Anna: x', '2022-12-31T22:59:00'],
    ['Korean', '2022. 12. 31. 오후 11:59 - Anna: x', '2022-12-31T22:59:00'],
    ['Arabic digits and comma', '٣١/١٢/٢٠٢٢، ٢٣:٥٩ - Anna: x', '2022-12-31T22:59:00'],
    ['month first', '12/31/22, 11:59 PM - Anna: x', '2022-12-31T22:59:00'],
    ['summer time', '1.7.22, 12:00 - Anna: x\n13.7.22, 12:00 - Anna: y', '2022-07-01T10:00:00'],
  ])('dates with %s', async (_, text, time) => {
    const { messages } = await readOf('chat.txt', text);
    expect(told(messages)[0]).toMatch(new RegExp(`^${time} \\| Anna`));
  });

  test('day and month are decided by the whole file, else by which runs forward, else by habit; and said', async () => {
    const first = async (...lines: string[]) => {
      const { messages, notes } = await readOf(
        'chat.txt',
        lines.map((line) => `${line} - Anna: x`).join('\n'),
      );
      return [messages[0] ? new Date(messages[0].at).toISOString().slice(0, 10) : '', ...notes];
    };
    expect(await first('1/2/23, 12:00', '3/4/23, 12:00', '13/4/23, 12:00')).toEqual(['2023-02-01']);
    expect(await first('1/2/23, 12:00', '3/4/23, 12:00', '4/13/23, 12:00')).toEqual(['2023-01-02']);
    // By months it would run back from March to February.
    expect(await first('5/1/23, 12:00', '3/2/23, 12:00')).toEqual([
      '2023-01-05',
      'No date tells day and month apart; they were read as day, month, year, so they run forward.',
    ]);
    expect(await first('1/2/23, 12:00')).toEqual([
      '2023-02-01',
      'No date tells day and month apart; they were read as day, month, year, as is usual with 24 hours.',
    ]);
    expect((await first('1/2/23, 12:00 PM'))[0]).toBe('2023-01-02');
  });

  test('a longer export and one read in another zone have the same keys', async () => {
    const lines = ['13/1/23, 12:00 - Anna: x', '13/1/23, 12:00 - Anna: x', '14/1/23, 12:00 - Ben: y'];
    const short = await readOf('chat.txt', lines.slice(0, 2).join('\n'));
    const path = await fileOf('chat.txt', lines.join('\n'));
    const keys = (await itemsOf(path, createZone('Asia/Tokyo'))).flatMap((item) =>
      item.kind === 'message' ? [item.key] : [],
    );
    expect(keys.slice(0, 2)).toEqual(short.messages.map(({ key }) => key));
    expect(new Set(keys).size).toBe(3);
  });
});

describe('SillyTavern', () => {
  test.each([
    ['2024-1-5 @13h 02m 05s 123ms', '2024-01-05T12:02:05.123Z'],
    ['2024-01-05@13h02m05s', '2024-01-05T12:02:05.000Z'],
    ['January 5, 2024 1:02pm', '2024-01-05T12:02:00.000Z'],
    ['January 5, 2024 12:02am', '2024-01-04T23:02:00.000Z'],
    ['2024-01-05T12:02:05.123Z', '2024-01-05T12:02:05.123Z'],
    [1704456125123, '2024-01-05T12:02:05.123Z'],
    ['1704456125123', '2024-01-05T12:02:05.123Z'],
    ['yesterday', null],
    ['January 45, 2024 1:02pm', null],
    [undefined, null],
  ])('a time written as %s', (written, expected) => {
    const at = sentAt(written, wallClock(BERLIN));
    expect(at === null ? null : new Date(at).toISOString()).toBe(expected);
  });

  test('only what was chosen counts; notes are left out; macros are names', async () => {
    const lines = [
      {
        user_name: 'Anna',
        character_name: 'Luna',
        create_date: '2024-1-5',
        chat_metadata: { note_prompt: 'x' },
      },
      {
        name: 'Luna',
        is_user: false,
        is_system: false,
        send_date: 'January 5, 2024 1:02pm',
        mes: 'Hi {{user}}, I am {{char}}.',
        swipes: ['other'],
      },
      { name: 'Anna', is_user: true, is_system: false, send_date: 'January 5, 2024 1:03pm', mes: 'Hello' },
      { name: 'Note', is_user: false, is_system: true, send_date: 'January 5, 2024 1:03pm', mes: 'hidden' },
      {
        name: 'Ben',
        is_user: false,
        original_avatar: 'ben.png',
        send_date: 'January 5, 2024 1:04pm',
        mes: 'I am here, too',
      },
      { name: 'Luna', is_user: false, send_date: null, mes: 'when?' },
    ];
    const { messages, left } = await readOf('chat.jsonl', lines.map((line) => json(line)).join('\n'));
    expect(told(messages)).toEqual([
      '2024-01-05T12:02:00 | Luna | persona | Hi Anna, I am Luna.',
      '2024-01-05T12:03:00 | Anna | person | Hello',
      '2024-01-05T12:04:00 | Ben | I am here, too',
    ]);
    expect(left).toEqual(['notes and hidden messages', 'messages without a readable time']);
  });
});

describe('ChatGPT', () => {
  const node = (id: string, parent: string | null, children: string[], message: object | null) => [
    id,
    { id, parent, children, message: message && { id, ...message } },
  ];
  const said = (role: string, text: string, more: object = {}) => ({
    author: { role },
    create_time: 1_700_000_000.5,
    content: { content_type: 'text', parts: [text] },
    recipient: 'all',
    metadata: {},
    ...more,
  });
  const conversation = {
    title: 'Boats',
    create_time: 1_700_000_000,
    mapping: Object.fromEntries([
      node('root', null, ['sys'], null),
      node('sys', 'root', ['me'], said('system', 'rules')),
      node('me', 'sys', ['old', 'new'], said('user', 'Which boat?', { create_time: null })),
      node('old', 'me', [], said('assistant', 'a discarded answer')),
      node('new', 'me', ['tool'], said('assistant', 'The Petrel.')),
      node('tool', 'new', ['search'], said('tool', 'result')),
      node('search', 'tool', ['picture'], said('assistant', 'query', { recipient: 'browser' })),
      node(
        'picture',
        'search',
        ['hidden'],
        said('user', '', {
          content: { content_type: 'multimodal_text', parts: [{ asset_pointer: 'x' }, 'And this?'] },
        }),
      ),
      node(
        'hidden',
        'picture',
        ['thought'],
        said('user', 'x', { metadata: { is_visually_hidden_from_conversation: true } }),
      ),
      node(
        'thought',
        'hidden',
        ['about'],
        said('assistant', '', { content: { content_type: 'thoughts', thoughts: [] } }),
      ),
      node(
        'about',
        'thought',
        [],
        said('user', '', { content: { content_type: 'user_editable_context', user_profile: 'x' } }),
      ),
    ]),
    current_node: 'about',
    conversation_id: 'c1',
  };

  test('the way to the current answer; without one, to the newest', async () => {
    const { messages, left } = await readOf('conversations.json', json([conversation]));
    expect(told(messages)).toEqual([
      '2023-11-14T22:13:20 | User | person | Which boat?',
      '2023-11-14T22:13:20 | ChatGPT | persona | The Petrel.',
      '2023-11-14T22:13:20 | User | person | And this?',
    ]);
    expect(left.filter((why) => why === 'custom instructions')).toHaveLength(1);
    expect(left).toHaveLength(7);
    const without = { ...conversation, current_node: undefined };
    expect((await readOf('conversations.json', json([without]))).messages.length).toBeGreaterThan(0);
  });

  test('a circle in the tree ends; numbered files in a zip are one history', async () => {
    const circle = {
      ...conversation,
      mapping: Object.fromEntries([
        node('a', 'b', ['b'], said('user', 'x')),
        node('b', 'a', ['a'], said('user', 'y')),
      ]),
      current_node: 'a',
    };
    const zip = zipOf({
      'conversations-001.json': json([{ ...conversation, conversation_id: 'c2' }]),
      'conversations-000.json': json([circle]),
      'chat.html': '<html></html>',
    });
    const { messages } = await readOf('chatgpt.zip', zip);
    expect(messages.map(({ text }) => text)).toEqual(['y', 'x', 'Which boat?', 'The Petrel.', 'And this?']);
  });
});

test('Claude: both forms of text, files without words', async () => {
  const conversation = {
    uuid: 'c',
    name: 'Boats',
    created_at: '2024-01-05T12:00:00.000Z',
    chat_messages: [
      {
        uuid: '1',
        text: 'Which boat?',
        sender: 'human',
        created_at: '2024-01-05T12:02:05.123456Z',
        attachments: [],
        files: [],
      },
      {
        uuid: '2',
        text: '',
        content: [
          { type: 'thinking', thinking: 'x' },
          { type: 'text', text: 'The Petrel.' },
        ],
        sender: 'assistant',
        created_at: '2024-01-05T12:03:00Z',
      },
      {
        uuid: '3',
        text: '',
        sender: 'human',
        created_at: '2024-01-05T12:04:00Z',
        files: [{ file_name: 'x.png' }],
      },
    ],
  };
  const zip = zipOf({ 'conversations.json': json([conversation]), 'memories.json': '[{"x":1}]' });
  const { messages, left } = await readOf('claude.zip', zip);
  expect(told(messages)).toEqual([
    '2024-01-05T12:02:05 | User | person | Which boat?',
    '2024-01-05T12:03:00 | Claude | persona | The Petrel.',
  ]);
  expect(left).toEqual(['media without words']);
});
