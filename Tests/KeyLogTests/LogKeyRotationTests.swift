import Testing
import ThicketCrypto
import ThicketKeyLog

/// Statements that a log's key was replaced, and handles of names.
@Suite("Key log: changes of its key, and handles")
struct LogKeyRotationTests {
    private let old = Ed25519.SigningKey.random()
    private let new = Ed25519.SigningKey.random()
    private let other = Ed25519.SigningKey.random()

    @Test("a statement of both keys is accepted by a device that trusts the old one, also after a transfer")
    func roundTrip() throws {
        let made = try LogKeyRotation(app: "chat", from: old, to: new, time: 5)
        let read = try LogKeyRotation(made.bytes)
        #expect(read == made && read.new == new.verifyingKey && read.time == 5)
        try read.check(app: "chat", trusted: old.verifyingKey)
    }

    @Test("statements for another app, from another key, changed or cut anywhere are refused")
    func refused() throws {
        let made = try LogKeyRotation(app: "chat", from: old, to: new, time: 5)
        #expect(keyLogRefusal { try made.check(app: "notes", trusted: old.verifyingKey) } == .otherApp)
        #expect(keyLogRefusal { try made.check(app: "chat", trusted: other.verifyingKey) } == .previous)
        #expect(keyLogRefusal { try made.check(app: "chat", trusted: new.verifyingKey) } == .previous)
        #expect(keyLogRefusal { _ = try LogKeyRotation(app: "chat", from: old, to: old, time: 5) } == .sameKeys)
        #expect(keyLogRefusal { _ = try LogKeyRotation(app: "Chat", from: old, to: new, time: 5) } == .malformed)
        for place in made.bytes.indices {
            var bytes = made.bytes
            bytes[place] ^= 1
            #expect(
                keyLogRefusal { try LogKeyRotation(bytes).check(app: "chat", trusted: old.verifyingKey) } != nil,
                "byte \(place)")
            #expect(keyLogRefusal { _ = try LogKeyRotation(Array(made.bytes[..<place])) } == .malformed)
        }
        #expect(keyLogRefusal { _ = try LogKeyRotation(made.bytes + [0]) } == .malformed)
    }

    @Test("a handle depends on app and folded name only, has 69 bytes, and is one user of the log")
    func handles() throws {
        let handle = try KeyLogHandle.name(KeyLogHandle.folded("Ann@Example.com"), app: "chat")
        #expect(handle.utf8.count == 69 && handle.hasPrefix(KeyLogHandle.prefix))
        #expect(handle == (try KeyLogHandle.name("ann@example.com", app: "chat")))
        #expect(handle != (try KeyLogHandle.name("ann@example.com", app: "notes")))
        #expect(handle != (try KeyLogHandle.name("bob@example.com", app: "chat")))
        let person = try KeyLogPerson(handle, 1)
        #expect(try KeyLogEntry(person.newest.bytes).user == handle)
    }
}
