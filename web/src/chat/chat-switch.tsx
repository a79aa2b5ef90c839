/** Leads to another chat of the page, or to a new one: it begins with its first message. */
import { useTexts } from '../app.ts';
import { chatName, MAIN_CHAT, OWN_PREFIX } from '../kit/chats.ts';
import { Dialog } from '../kit/dialog.tsx';
import { useFollowed } from '../kit/follow.ts';
import { addressOf, go } from '../place.ts';
import { chats } from './requests.ts';
import { slugOf } from './slug.ts';

/** The ids of all chats of the page, this one among them. */
export function useChats(chat: string): string[] {
  const known = useFollowed(['conversations'], chats).answer ?? [];
  return [MAIN_CHAT, ...new Set([...known, chat].filter((each) => each !== MAIN_CHAT))];
}

export interface Switching {
  chat: string;
  /** Their ids. */
  chats: readonly string[];
  /** Asks for the title of a new one. */
  begin: () => void;
}

export function ChatSwitch({ chat, chats, begin }: Switching) {
  const { chat: texts, kit } = useTexts();
  return (
    <select
      class="chat-switch"
      aria-label={texts.chats}
      value={chat}
      onChange={({ currentTarget }) => {
        const { value } = currentTarget;
        if (value !== '') return go(addressOf('chat', value === MAIN_CHAT ? [] : [value]));
        currentTarget.value = chat;
        begin();
      }}
    >
      {chats.map((each) => (
        <option key={each} value={each}>
          {chatName(each, each, kit.mainChat)}
        </option>
      ))}
      <option value="">{texts.newChat}</option>
    </select>
  );
}

export function NewChat({ close }: { close: () => void }) {
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
          go(addressOf('chat', [OWN_PREFIX + slug]));
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
            {kit.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
