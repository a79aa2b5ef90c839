import { useTexts } from '../app.ts';

export default function Operations() {
  return <h1>{useTexts().frame.operations}</h1>;
}
