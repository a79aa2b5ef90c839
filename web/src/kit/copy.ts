/** Whether the text is in the clipboard now. Plain HTTP has no `navigator.clipboard`: a selected field is copied instead. */
export async function copied(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    const isDone = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    if (isDone) return true;
  }
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.className = 'hidden';
  // Beside what has the focus: around an open dialog nothing can be selected.
  (before?.closest('dialog') ?? document.body).append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}
