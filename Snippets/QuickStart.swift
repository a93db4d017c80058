import ThicketClient

struct Note: Codable, Sendable {
    var title: String
    var text: String
}

let session = try await Thicket.connect(
    server: "http://127.0.0.1:8000", app: "notes", token: "0123456789abcdef0123456789abcdef", store: .file("notes.db"))
let notes = try await session.bucket("notes")

// Kept on this device at once, sent when there is a connection.
try await notes.set("plan", to: Note(title: "Oak", text: "Plant it in spring."))

// What this device and all others do, as it happens.
for await event in await notes.changes {
    if case .changed(let change) = event, let note = try await notes.get(change.key, as: Note.self) {
        print("\(change.key): \(note.title)")
    }
}
