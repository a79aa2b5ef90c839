/** Messages of one's own that the conversation does not have yet. */
import { useEffect } from 'preact/hooks';
import { useTexts } from '../app.ts';
import type { Log } from '../kit/log.ts';
import { PlainText } from '../kit/markdown.tsx';
import { arrived, showNoMore, takeBack, waiting } from './outgoing.ts';
import type { Waiting } from './queue.ts';

/** The clocks of browser and gateway may differ so much. */
const CLOCKS_MS = 120_000;
/** Commands that change the newest answer stand in no conversation. */
const UNSEEN = /^\/(?:again|continue|edit|undo)\b/i;

export function Outgoing({ chat, log }: { chat: string; log: Log }) {
  const own = log.rows.value.filter(({ author }) => author.kind === 'person' && author.own);
  const here = arrived.value.filter((each) => each.chat === chat);
  const shown = here.filter(({ text, at }) => {
    const said = text.trim();
    if (UNSEEN.test(said)) return false;
    // Of a command the conversation keeps the name.
    const name = said.startsWith('/') ? said.split(/\s/)[0] : said;
    return !own.some((row) => row.at > at - CLOCKS_MS && [said, name].includes(row.text.trim()));
  });
  useEffect(() => {
    for (const each of here) if (!shown.includes(each)) showNoMore(each.id);
  });
  return (
    <>
      {shown.map((each) => (
        <Message key={each.id} message={each} isWaiting={false} />
      ))}
      {waiting.value
        .filter((each) => each.chat === chat)
        .map((each) => (
          <Message key={each.id} message={each} isWaiting />
        ))}
    </>
  );
}

function Message({ message, isWaiting }: { message: Waiting; isWaiting: boolean }) {
  const { chat, kit } = useTexts();
  const { id, text, files, refused } = message;
  return (
    <article class="message person own first" aria-label={kit.you}>
      <PlainText text={text} />
      {files.length > 0 && <p class="small soft">{files.map(({ name }) => name).join(', ')}</p>}
      {isWaiting && refused === undefined && <p class="tiny soft waiting">{chat.waiting}</p>}
      {refused !== undefined && (
        <div class="fault row">
          <p>{refused || chat.refused}</p>
          <button type="button" onClick={() => takeBack(id)}>
            {chat.takeBack}
          </button>
        </div>
      )}
    </article>
  );
}
