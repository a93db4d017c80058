import ThicketClient

/// Our own auth server: it knows the user, and signs a new token when we ask.
struct OurAuthServer: TokenSource {
    let password: String

    func token(for request: TokenRequest) async throws -> String {
        // POST https://auth.example.com/login {"user", "password", "device_id": request.deviceId};
        // throw TokenDenied() on 401.
        "eyJhbGciOiJIUzUxMiIsImF1dGgiOiJ2MiIsInR5cCI6IkpXVCJ9.…"
    }
}

let app = try ThicketApp(
    server: "http://127.0.0.1:8000", app: "shop", apiKey: "6d0f5d0e-8a0c-4a53-9d0b-0a4b1c1f5b0e",
    store: .file("shop.db"))
let ours = OurAuthServer(password: "correct horse")
let first = TokenRequest(entityId: "entity123", partnerId: "1000", deviceId: app.deviceId, accessToken: "")

let session = try await app.createSession(
    accessToken: try await ours.token(for: first), entityId: "entity123", partnerId: "1000", tokens: ours)

// No word of tokens here: when one ends, the session asks for the next, once, and goes on.
try await session.addressBook.save(Address(fullName: "Ada Oak", line1: "1 Forest Road", city: "Bath"))
for address in try await session.addressBook.getAll() {
    print("\(address.fullName), \(address.city)")
}

for await event in await session.events {
    if case .signedOut(let reason) = event {
        print(reason.text)  // Show the login. Edits are kept, and go out after signIn(accessToken:).
    }
}
