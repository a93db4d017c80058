import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestServer

@Suite("Sessions of built-in accounts", .serialized, .timeLimit(.minutes(15)))
struct BuiltInAccountTests {
    private let bench: AccountServer
    private static let patience = Duration.seconds(120)

    init() throws { bench = try AccountServer() }

    private func code(_ body: () async throws(ClientError) -> Void) async -> (ClientError.Code, Int?)? {
        do throws(ClientError) {
            try await body()
            return nil
        } catch { return (error.code, error.number) }
    }

    @Test("devices share data after sign-up and sign-in; wrong credentials (401) differ from an unreachable server")
    func signIn() async throws {
        let app = try bench.notes()
        let one = try await app.signUp(username: "ann", password: "open sesame")
        let notes = try await one.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: Self.patience)
        let two = try await app.signIn(username: "ANN", password: "open sesame")
        #expect(two.user == one.user, "names are compared without case, and returned as they were made")
        let copy = try await two.bucket("notes")
        try await copy.waitUntilSynced(timeout: Self.patience)
        #expect(try await copy.get("a") == ["n": 1])
        #expect(try await two.devices().filter(\.isThisOne).count == 1)
        #expect(try await two.devices().count == 2)
        for (name, password, number) in [("ann", "wrong", 401), ("bob", "wrong", 401)] {
            let refused = await code { () throws(ClientError) in
                _ = try await app.signIn(username: name, password: password)
            }
            #expect(refused?.0 == .unauthorized && refused?.1 == number)
        }
        let taken = await code { () throws(ClientError) in
            _ = try await app.signUp(username: "ann", password: "another one")
        }
        #expect(taken?.0 == .refused && taken?.1 == 409)
        await one.close()
        await two.close()
        let nowhere = try ThicketApp(server: "http://127.0.0.1:1", app: "notes", apiKey: "k")
        let lost = await code { () throws(ClientError) in
            _ = try await nowhere.signIn(username: "ann", password: "open sesame")
        }
        #expect(lost?.0 == .network)
    }

    @Test("a password change signs out the other devices and not this one, and no edit is lost")
    func changePassword() async throws {
        let app = try bench.notes()
        let one = try await app.signUp(username: "ann", password: "open sesame")
        let two = try await app.signIn(username: "ann", password: "open sesame")
        var events = await two.events.makeAsyncIterator()
        let notes = try await one.bucket("notes")
        let copy = try await two.bucket("notes")
        for bucket in [notes, copy] { try await bucket.waitUntilSynced(timeout: Self.patience) }
        try await notes.set("a", to: ["n": 1])
        let wrong = await code { () throws(ClientError) in
            try await one.changePassword(from: "wrong", to: "another one")
        }
        #expect(wrong?.0 == .unauthorized && wrong?.1 == 401)
        #expect(await one.signOutReason == nil)
        try await one.changePassword(from: "open sesame", to: "another one")
        try await notes.set("b", to: ["n": 2])
        try await notes.waitUntilSynced(timeout: Self.patience)
        #expect(await one.signOutReason == nil)
        #expect(await events.next() == .expired)
        #expect(await events.next() == .signedOut(.expired))
        try await copy.set("c", to: ["n": 3])
        let old = await code { () throws(ClientError) in
            try await two.signIn(password: "open sesame")
        }
        #expect(old?.1 == 401)
        try await two.signIn(password: "another one")
        try await copy.waitUntilSynced(timeout: Self.patience)
        #expect(try await copy.keys() == ["a", "b", "c"])
        await one.close()
        await two.close()
    }

    @Test("a device revokes another device's token; deleting the account signs out as deleted")
    func tokens() async throws {
        let app = try bench.notes()
        let one = try await app.signUp(username: "ann", password: "open sesame")
        let two = try await app.signIn(username: "ann", password: "open sesame")
        let others = try await one.tokens().filter { !$0.isCurrent }
        #expect(others.count == 1)
        try await one.revokeToken(try #require(others.first).id)
        #expect(await code { () throws(ClientError) in try await one.revokeToken("0123") }?.0 == .notFound)
        #expect(await code { () throws(ClientError) in _ = try await two.tokens() }?.1 == 401)
        #expect(await two.signOutReason == .expired)
        #expect(await code { () throws(ClientError) in try await one.deleteAccount(password: "wrong") }?.1 == 401)
        try await one.deleteAccount(password: "open sesame")
        #expect(await one.signOutReason == .deleted)
        let gone = await code { () throws(ClientError) in
            _ = try await app.signIn(username: "ann", password: "open sesame")
        }
        #expect(gone?.1 == 401)
        await one.close()
        await two.close()
    }

    @Test("a partner's session refuses the calls of built-in accounts with invalidOptions")
    func kinds() async throws {
        let user = try bench.register()
        let partner = try await bench.app().createSession(
            accessToken: bench.login(user, seconds: 60), entityId: user.entity, partnerId: bench.partner)
        #expect(await code { () throws(ClientError) in _ = try await partner.tokens() }?.0 == .invalidOptions)
        let change = await code { () throws(ClientError) in
            try await partner.changePassword(from: "a", to: "b")
        }
        #expect(change?.0 == .invalidOptions)
        #expect(
            await code { () throws(ClientError) in try await partner.deleteAccount(password: "a") }?.0
                == .invalidOptions)
        await partner.close()
    }

    @Test("unsent edits survive a sign-out and a restart, and go out when the same user signs in again")
    func restart() async throws {
        let folder = try TemporaryFolder()
        let app = try bench.notes(store: .file(folder.file("n.db")))
        let one = try await app.signUp(username: "ann", password: "open sesame")
        let notes = try await one.bucket("notes")
        try await notes.waitUntilSynced(timeout: Self.patience)
        #expect(await one.signOut())
        try await notes.set("late", to: ["n": 1])
        await one.close()
        let two = try await app.signIn(username: "ann", password: "open sesame")
        let again = try await two.bucket("notes")
        try await again.waitUntilSynced(timeout: Self.patience)
        #expect(try await again.pendingCount == 0)
        #expect(try await again.info("late").version == 1)
        await two.close()
    }
}

@Suite("The lock of a store")
struct StoreLockTests {
    @Test(
        "a closed store can be opened at once, though a starting child process still has copies of its descriptors")
    func copies() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        var store: SQLiteLocalStore? = try .init(path: path)
        let held: [Int32] = (3..<Int32(4_096)).filter { (descriptor: Int32) in
            var name = [UInt8](repeating: 0, count: 4_096)
            let count = readlink("/proc/self/fd/\(descriptor)", &name, name.count)
            return count > 0 && String(decoding: name[..<count], as: UTF8.self).hasSuffix(path + ".lock")
        }
        #expect(held.count == 1)
        // The copies that a fork makes.
        let copies = held.map { dup($0) }
        store?.close()
        store = nil
        let again = try SQLiteLocalStore(path: path)
        again.close()
        for copy in copies { close(copy) }
    }
}

@Suite("The device id of a store")
struct DeviceIDTests {
    @Test("the device id of a store is made once, kept in a file of mode 0600, and the same at the next start")
    func kept() throws {
        let folder = try TemporaryFolder()
        let store = StoreLocation.file(folder.file("n.db"))
        let id = try DeviceID.kept(by: store)
        #expect(id.utf8.count == 32)
        #expect(try DeviceID.kept(by: store) == id)
        var status = stat()
        #expect(stat(folder.file("n.db.device"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try DeviceID.kept(by: .file(folder.file("other.db"))) != id)
        #expect(try DeviceID.kept(by: .memory) != DeviceID.kept(by: .memory))
    }

    @Test("16 concurrent requests get the same device id")
    func race() async throws {
        let folder = try TemporaryFolder()
        let store = StoreLocation.file(folder.file("n.db"))
        let ids: Set<String> = await withTaskGroup(of: String?.self) { (group: inout TaskGroup<String?>) in
            for _ in 0..<16 { group.addTask { try? DeviceID.kept(by: store) } }
            return await group.reduce(into: []) { $0.insert($1 ?? "none") }
        }
        #expect(ids.count == 1 && !ids.contains("none"))
    }

    @Test(
        "a damaged id file is an error, and no other id takes its place",
        arguments: ["", "short", "with space inside"])
    func damaged(text: String) throws {
        let folder = try TemporaryFolder()
        let file = open(folder.file("n.db.device"), O_WRONLY | O_CREAT, 0o600)
        _ = write(file, text, text.utf8.count)
        close(file)
        let error = #expect(throws: ClientError.self) {
            try DeviceID.kept(by: .file(folder.file("n.db")))
        }
        #expect(error?.code == .store)
    }
}
