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
  /** The name of the persona that answers; without one of its own, none. */
  active: string | undefined;
}) {
  const { chat: texts } = useTexts();
  const [isNew, setNew] = useState(false);
  const fill = (text: string) => () => {
    suggested.value = { text };
  };
  const offers = [
    { title: texts.offerRemember, text: texts.offerRememberText, act: fill(texts.offerRememberText) },
    { title: texts.offerPersona, text: texts.offerPersonaText, act: () => setNew(true) },
    { title: texts.offerAsk, text: texts.offerAskText, act: fill(texts.offerAskText) },
  ];
  return (
    <div class="offers">
      <h2>{active === undefined ? texts.welcomeAll : filled(texts.welcome, { name: active })}</h2>
      <p class="soft">{texts.welcomeWords}</p>
      <div class="offer-list">
        {offers.map(({ title, text, act }) => (
          <button key={title} type="button" onClick={act}>
            <b>{title}</b>
            <span class="soft small">{text}</span>
          </button>
        ))}
      </div>
      {isNew && <NewPersona chat={chat} close={() => setNew(false)} />}
    </div>
  );
}
