/** A file changed on disk while it was edited here: both texts, and nothing is lost until one has chosen. */
import { useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { Dialog } from './dialog.tsx';
import { Difference } from './difference.tsx';

export function Conflict({
  mine,
  theirs,
  keepMine,
  takeTheirs,
  cancel,
}: {
  mine: string;
  theirs: string;
  /** `text`: as it stands in the dialog, where lines of the other may have been copied into it. */
  keepMine: (text: string) => void;
  takeTheirs: () => void;
  /** The text that is being edited stays as it is, unsaved. */
  cancel: () => void;
}) {
  const { kit } = useTexts();
  const [text, setText] = useState(mine);
  return (
    <Dialog title={kit.changedMeanwhile} close={cancel} isWide>
      <div class="conflict">
        <div class="both">
          <label>
            {kit.yours}
            <textarea rows={10} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
          </label>
          <label>
            {kit.onDisk}
            <textarea rows={10} readOnly value={theirs} />
          </label>
        </div>
        <Difference before={theirs} after={text} />
        <div class="buttons">
          <button type="button" class="quiet" onClick={cancel}>
            {kit.cancel}
          </button>
          <button type="button" onClick={takeTheirs}>
            {kit.takeTheirs}
          </button>
          <button type="button" onClick={() => keepMine(text)}>
            {kit.keepMine}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
