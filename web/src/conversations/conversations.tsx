import { useTexts } from '../app.ts';

export default function Conversations() {
  return <h1>{useTexts().frame.conversations}</h1>;
}
