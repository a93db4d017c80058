import Glibc
import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

@testable import ThicketClient

/// The file of a key book.
@Suite("Key books: the file")
struct PeopleStorageTests {
    private final class Place {
        let path = "/tmp/thicket-people-file-\(getpid())-\(RandomBytes.hex(6))"
        let key = StoreKey.random()
        var file: String { path + "/keys.people" }
        var storage: FilePeopleStorage { FilePeopleStorage(path: file, key: key) }

        init() { mkdir(path, 0o700) }
        deinit {
            for name in ["keys.people", "keys.people.lock", "keys.people.half"] { unlink("\(path)/\(name)") }
            rmdir(path)
        }

        func bytes() throws -> [UInt8] {
            let found = try #require(try PrivateFile.read(file, max: 1 << 20))
            return found.withUnsafeBytes { Array($0) }
        }

        func write(_ bytes: [UInt8], to name: String = "keys.people") throws {
            try PrivateFile.write(SecureBytes(copying: bytes), to: "\(path)/\(name)", isNew: false)
        }
    }

    private func keep(_ bytes: [UInt8], in place: Place) throws {
        try place.storage.update { (kept: inout [UInt8]?) throws(ClientError) in kept = bytes }
    }

    @Test("a file that was cut at any byte, or changed, is refused by reading and by changing, and stays as it is")
    func torn() throws {
        let place = Place()
        try keep(Array("what is known".utf8), in: place)
        let whole = try place.bytes()
        var damaged = (0..<whole.count).map { Array(whole.prefix($0)) }
        damaged += whole.indices.map { index in
            var bytes = whole
            bytes[index] ^= 1
            return bytes
        }
        damaged.append(whole + [0])
        for bytes in damaged {
            try place.write(bytes)
            let read = #expect(throws: ClientError.self) { _ = try place.storage.read() }
            #expect(read?.code == .store)
            #expect(throws: ClientError.self) {
                try place.storage.update { (kept: inout [UInt8]?) throws(ClientError) in kept = [1] }
            }
            #expect(try place.bytes() == bytes)
        }
        try place.write(whole)
        #expect(try place.storage.read() == Array("what is known".utf8))
    }

    @Test("a draft of a program that was killed is not read, and a change that throws writes nothing")
    func interrupted() throws {
        let place = Place()
        try place.write([1, 2, 3], to: "keys.people.half")
        #expect(try place.storage.read() == nil)
        try keep([7], in: place)
        let before = try place.bytes()
        #expect(throws: ClientError.self) {
            try place.storage.update { (kept: inout [UInt8]?) throws(ClientError) in
                kept = [8]
                throw ClientError(.store, "the decision failed")
            }
        }
        #expect(try place.bytes() == before)
        #expect(try place.storage.read() == [7])
    }

    @Test("a file that other users can read, of another owner, behind a link, or sealed under another key is refused")
    func foreign() throws {
        let place = Place()
        try keep([7], in: place)
        chmod(place.file, 0o644)
        #expect(throws: ClientError.self) { _ = try place.storage.read() }
        chmod(place.file, 0o600)
        let other = FilePeopleStorage(path: place.file, key: .random())
        #expect(throws: ClientError.self) { _ = try other.read() }
        if geteuid() == 0 {
            chown(place.file, 12_345, 12_345)
            #expect(throws: ClientError.self) { _ = try place.storage.read() }
            chown(place.file, 0, 0)
        }
        #expect(try place.storage.read() == [7])
        rename(place.file, place.path + "/keys.people.half")
        symlink(place.path + "/keys.people.half", place.file)
        #expect(throws: ClientError.self) { _ = try place.storage.read() }
    }

    @Test("alarms that a key book has kept are read from its place without a session")
    func alarms() async throws {
        let place = Place()
        let location = StoreLocation.sealed(place.path + "/keys", place.key)
        #expect(try location.peopleAlarms().isEmpty)
        #expect(try StoreLocation.memory.peopleAlarms().isEmpty)
        let server = LyingKeyServer()
        let ann = LogPerson("ann-id")
        for entry in try ann.entries() { server.set { $0.log.commit(entry) } }
        let book = try ann.book(server, place.storage)
        await book.checkOwnAtStart()
        #expect(try location.peopleAlarms().isEmpty)
        let lookups = server.look(\.lookups)
        let mallory = try #require(try LogPerson("ann-id").entries().first)
        server.set { $0.log.commit(mallory, replacing: true) }
        // Within an hour nothing is asked again.
        await book.checkOwnAtStart()
        #expect(server.look(\.lookups) == lookups)
        server.set { $0.time += 4_000_000 }
        await book.checkOwnAtStart()
        #expect(try location.peopleAlarms().map(\.evidence.kind) == [.foreignKey])
        #expect(try location.peopleAlarms().allSatisfy(\.isOpen))
    }
}
