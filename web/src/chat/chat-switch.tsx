/** Leads to another chat of the page, or to a new one: it begins with its first message. */
import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { Dialog } from '../kit/dialog.tsx';
import { onChange } from '../live.ts';
import { addressOf, go } from '../place.ts';
import { chats } from './requests.ts';
import { slugOf } from './slug.ts';

export const MAIN = 'board_main';
const PREFIX = 'board_';

export function ChatSwitch({ chat }: { chat: string }) {
  const { chat: texts } = useTexts();
  const [known, setKnown] = useState<string[]>([]);
  const [isNew, setNew] = useState(false);
  useEffect(() => {
    const reread = () =>
      void chats().then(
        (answer) => setKnown(answer.chats.map((each) => each.chat)),
        // The next connection asks again.
        () => {},
      );
    reread();
    return onChange('conversations', reread);
  }, []);
  const all = [MAIN, ...new Set([...known, chat].filter((each) => each !== MAIN))];
  return (
    <>
      <select
        class="chat-switch"
        aria-label={texts.chats}
        value={chat}
        onChange={({ currentTarget }) => {
          const { value } = currentTarget;
          if (value !== '') return go(addressOf('chat', value === MAIN ? [] : [value]));
          currentTarget.value = chat;
          setNew(true);
        }}
      >
        {all.map((each) => (
          <option key={each} value={each}>
            {each === MAIN ? texts.mainChat : each.slice(PREFIX.length).replaceAll('-', ' ')}
          </option>
        ))}
        <option value="">{texts.newChat}</option>
      </select>
      {isNew && <NewChat close={() => setNew(false)} />}
    </>
  );
}

function NewChat({ close }: { close: () => void }) {
  const { chat, kit } = useTexts();
  return (
    <Dialog title={chat.newChat} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          const slug = slugOf(String(new FormData(event.currentTarget).get('title')));
          if (slug === '') return;
          close();
          go(addressOf('chat', [PREFIX + slug]));
        }}
      >
        <label>
          {chat.chatTitle}
          <input name="title" required maxLength={40} autocomplete="off" />
        </label>
        <div class="buttons">
          <button type="button" onClick={close}>
            {kit.cancel}
          </button>
          <button type="submit" class="primary">
            {chat.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
