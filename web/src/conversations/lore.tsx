/** Entries of lorebooks in an opened turn: which stood in it and why, and which did not fit. */
import type { TurnLore } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { numberOf, Part } from './part.tsx';

/** Names and keys stand as their authors wrote them. */
export function Lore({ lore: { entries, more, givenUp } }: { lore: TurnLore }) {
  const { conversations: texts } = useTexts();
  const kept = entries.filter((entry) => entry.kept);
  const left = entries.filter((entry) => !entry.kept);
  return (
    <Part title={texts.lore} note={String(kept.length)}>
      {kept.length === 0 && <p class="soft">{texts.noLore}</p>}
      <LoreEntries entries={kept} label={texts.loreJoined} />
      {left.length > 0 && <p class="small">{texts.loreLeft}</p>}
      <LoreEntries entries={left} label={texts.loreLeft} />
      {more > 0 && <p class="small soft">{filled(texts.loreMore, { n: numberOf(more) })}</p>}
      {givenUp.length > 0 && (
        <>
          <p class="small">{texts.loreGivenUp}</p>
          <ul class="recalled" aria-label={texts.loreGivenUp}>
            {givenUp.map((pattern, n) => (
              <li key={n}>
                <code>{pattern}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </Part>
  );
}

function LoreEntries({ entries, label }: { entries: TurnLore['entries']; label: string }) {
  const { conversations: texts } = useTexts();
  if (entries.length === 0) return null;
  return (
    <ul class="recalled" aria-label={label}>
      {entries.map(({ name, book, key, from }, n) => (
        <li key={n}>
          <bdi>{name}</bdi>{' '}
          <small class="soft">
            {key === null
              ? filled(texts.loreAlways, { book })
              : filled(from === null ? texts.loreKey : texts.loreFrom, { book, key, from: from ?? '' })}
          </small>
        </li>
      ))}
    </ul>
  );
}
