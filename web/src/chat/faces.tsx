/** Those who are here: a tap makes one the one that answers; the menu addresses one, invites it, or lets it go. */
import { useState } from 'preact/hooks';
import type { BoardPersona } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { Dialog } from '../kit/dialog.tsx';
import { Face } from '../kit/face.tsx';
import { Fault } from '../kit/fault.tsx';
import { Icon } from '../kit/icons.tsx';
import { createPersona, PersonaFields } from '../kit/persona-fields.tsx';
import { Popover } from '../kit/popover.tsx';
import { moveFocus } from '../kit/tabs.tsx';
import { ChatSwitch, type Switching } from './chat-switch.tsx';
import { suggested } from './composer.tsx';

interface FacesProps {
  chat: string;
  /** The ID of the one that answers. */
  active: string;
  personas: readonly BoardPersona[];
  /** IDs of those that are writing. */
  writing: ReadonlySet<string>;
  say: (text: string) => void;
  switching: Switching;
}

export function Faces({ chat, active, personas, writing, say, switching }: FacesProps) {
  const { chat: texts, kit } = useTexts();
  const [isNew, setNew] = useState(false);
  const reached = personas.some(({ id }) => id === active) ? active : personas[0]?.id;
  return (
    <div class="faces">
      <div role="radiogroup" aria-label={texts.persona} onKeyDown={moveFocus}>
        {personas.map(({ id, name, avatar, present }) => (
          // biome-ignore lint/a11y/useSemanticElements: choosing one is a command that can fail, not a state of the page.
          <button
            key={id}
            type="button"
            role="radio"
            aria-checked={id === active}
            aria-label={name}
            tabIndex={id === reached ? 0 : -1}
            class={`${present ? 'here' : ''} ${writing.has(id) ? 'writing' : ''}`}
            onClick={() => id !== active && say(`/persona switch ${id}`)}
          >
            <Face name={name} avatar={avatar} />
            <span>{name}</span>
          </button>
        ))}
      </div>
      <button
        type="button"
        class="icon add"
        aria-label={kit.newPersona}
        title={kit.newPersona}
        onClick={() => setNew(true)}
      >
        <Icon name="plus" />
      </button>
      <Menu switching={switching} active={active} personas={personas} say={say} />
      {isNew && <NewPersona chat={chat} close={() => setNew(false)} />}
    </div>
  );
}

function Menu({ switching, active, personas, say }: Omit<FacesProps, 'chat' | 'writing'>) {
  const { chat } = useTexts();
  return (
    <Popover label={chat.who}>
      {(act) => (
        <>
          <ul class="list who">
            {personas.map(({ id: persona, name, avatar, present }) => (
              <li key={persona} class="row">
                <Face name={name} avatar={avatar} />
                <span class="grow">{name}</span>
                <button
                  type="button"
                  class="quiet"
                  onClick={act(() => {
                    suggested.value = { text: `${name}: `, isBegin: true };
                  })}
                >
                  {chat.address}
                </button>
                {persona !== active && (
                  <button
                    type="button"
                    class="quiet"
                    onClick={act(() => say(`/persona ${present ? 'leave' : 'invite'} ${persona}`))}
                  >
                    {present ? chat.letGo : chat.invite}
                  </button>
                )}
              </li>
            ))}
          </ul>
          <p class="tiny soft">{chat.whoHears}</p>
          <ChatSwitch {...switching} begin={act(switching.begin)} />
        </>
      )}
    </Popover>
  );
}

export function NewPersona({ chat, close }: { chat: string; close: () => void }) {
  const { kit } = useTexts();
  const [fault, setFault] = useState<string | null>(null);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    try {
      await createPersona(chat, event.currentTarget as HTMLFormElement);
      close();
    } catch (error) {
      setFault(sentenceOf(error));
    }
  }

  return (
    <Dialog title={kit.newPersona} close={close}>
      <form class="stack" onSubmit={submit}>
        <PersonaFields />
        <Fault says={fault} />
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
