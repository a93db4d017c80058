import ThicketClient
import ThicketCrypto

let app = try ThicketApp(
    server: "http://127.0.0.1:8000", app: "notes", apiKey: "0123456789abcdef0123456789abcdef", store: .file("ada.db"))
let accounts = try app.accounts()

// The password stays on this device, and so do the keys that are made here.
let password = SecureBytes(copying: Array("correct horse".utf8))
let ada = try await accounts.signUp(name: "ada@example.com", password: password)
let session = try await app.resume(ada)

// The server orders what it cannot read; ada's devices merge it, letter by letter.
let diary = try await session.bucket("diary", sealed: true)
try await diary.set("today", to: ["text": "Planted the oak."])
try await diary.editText("today", path: ["text"], at: 0, inserting: "Sunny. ")

// What the next start needs, to be kept as a secret: it opens the same buckets without the password.
let (kept, token) = (try DeviceKeys(ada.account).text, await session.accessToken)
await session.close()
let again = try await app.resume(try DeviceKeys(text: kept).open(), accessToken: token)
print(try await again.bucket("diary", sealed: true).keys())
