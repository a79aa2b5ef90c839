import { describe, expect, it } from 'vitest';
import { dataOf } from '../../src/core/file-text.js';
import { NO_NOTES, notesIn } from '../../src/groups/chat-notes.js';

const read = (source: string, threadId: string | null = null) => notesIn(dataOf(source), threadId);

describe('the notes of a chat', () => {
  const SOURCE = `title: Friends
note: Be brief.
scene: A café.
people:
  test_7: { name: Captain, description: old }
lore_off: [Sky]
threads:
  "12": { scene: A ship., note: "" }
`;

  it('are read from chat.yaml', () => {
    expect(read(SOURCE)).toEqual({
      notes: {
        ...{ note: 'Be brief.', scene: 'A café.', loreOff: ['Sky'] },
        people: { test_7: { name: 'Captain', description: 'old' } },
      },
      faults: [],
    });
  });

  it('of a thread go before those of the chat', () => {
    expect(read(SOURCE, '12').notes).toMatchObject({ scene: 'A ship.', note: '', loreOff: ['Sky'] });
    expect(read(SOURCE, '13').notes).toMatchObject({ scene: 'A café.', note: 'Be brief.' });
  });

  it.each(['', 'x', '- a', 'title: x'])('are none in %j', (source) => {
    expect(read(source)).toEqual({ notes: NO_NOTES, faults: [] });
  });

  it('of another kind are passed over and told', () => {
    const { notes, faults } = read('note: [a]\nscene: 7\npeople: { a: b }\nlore_off: Sky\n');
    expect(notes).toEqual({ ...NO_NOTES, scene: '7' });
    expect(faults).toHaveLength(3);
  });
});
