import assert from 'node:assert/strict'
import { test } from 'node:test'
import { html } from './html.ts'

test('a value in a page is shown as plain text and cannot reverse the writing direction', () => {
  assert.equal(
    html`<td>${'<b>"a"&\'\u202etxt\u0007\u0000\nb'}</td>`.html,
    '<td>&lt;b&gt;&quot;a&quot;&amp;&#39;\\u202etxt\\u0007\\u0000\nb</td>',
  )
})
