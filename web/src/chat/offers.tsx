/** An empty chat: a word of welcome, and three things to try, which go with the first message. */
import { useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { suggested } from './composer.tsx';
import { NewPersona } from './faces.tsx';

export function Offers({
  chat,
  active,
}: {
  chat: string;
  /** The name of the persona that answers. */
  active: string | undefined;
}) {
  const { chat: texts } = useTexts();
  const [isNew, setNew] = useState(false);
  const fill = (text: string) => () => {
    suggested.value = { text };
  };
  return (
    <div class="offers">
      <h2>{active === undefined ? texts.welcomeAll : filled(texts.welcome, { name: active })}</h2>
      <p class="soft">{texts.welcomeWords}</p>
      <div class="offer-list">
        <button type="button" onClick={fill(texts.offerRememberText)}>
          <b>{texts.offerRemember}</b>
          <span class="soft small">{texts.offerRememberText}</span>
        </button>
        <button type="button" onClick={() => setNew(true)}>
          <b>{texts.offerPersona}</b>
          <span class="soft small">{texts.offerPersonaText}</span>
        </button>
        <button type="button" onClick={fill(texts.offerAskText)}>
          <b>{texts.offerAsk}</b>
          <span class="soft small">{texts.offerAskText}</span>
        </button>
      </div>
      {isNew && <NewPersona chat={chat} close={() => setNew(false)} />}
    </div>
  );
}
