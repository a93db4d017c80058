import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("Sealed buckets of an account, at a real server", .serialized, .timeLimit(.minutes(15)))
struct SealedAccountTests {
    private let bench: AccountServer
    private static let patience = Duration.seconds(120)

    init() throws { bench = try AccountServer() }

    private func accounts() throws -> Accounts { try bench.notes().accounts(stretch: KeyBench.weak) }

    private func signUp() async throws -> SignedIn {
        try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
    }

    private func signIn(_ password: String = "one") async throws -> SignedIn {
        guard case .open(let login) = try await accounts().signIn(name: "ann", password: KeyBench.secret(password))
        else {
            throw ClientError(.unauthorized, "locked")
        }
        return login
    }

    /// A session without local data.
    private func device(_ login: SignedIn) async throws -> (session: ClientSession, diary: Bucket) {
        let session = try await bench.notes().resume(login)
        return (session, try await session.bucket("diary", sealed: true))
    }

    /// The text, once the device shows one of `length` characters.
    private func text(_ bucket: Bucket, length: Int) async throws -> String {
        let events = await bucket.changes
        if let text = try await bucket.get("today")?["t"]?.stringValue, text.count == length { return text }
        for await event in events {
            if case .integrity(let report) = event { Issue.record("\(report)") }
            if let text = try await bucket.get("today")?["t"]?.stringValue, text.count == length { return text }
        }
        throw ClientError(.closed, "the bucket ended")
    }

    private func type(_ letters: String, _ bucket: Bucket, atStart: Bool) async throws {
        for (number, letter) in letters.enumerated() {
            let length = try await bucket.get("today")?["t"]?.stringValue?.utf16.count ?? 0
            try await bucket.editText(
                "today", path: ["t"], at: atStart ? min(number, length) : length, inserting: String(letter))
        }
    }

    private static func refusal(_ body: () async throws -> Void) async -> ClientError.Code? {
        do {
            try await body()
            return nil
        } catch {
            if !(error is ClientError) { Issue.record(error) }
            return (error as? ClientError)?.code
        }
    }

    @Test(
        "devices by login, pairing and words read one text, the server has none of it, and new passwords open it"
    )
    func run() async throws {
        let ann = try await signUp()
        let (one, first) = try await device(ann)
        let (two, second) = try await device(try await signIn())
        let open = try await one.bucket("plain")
        try await open.set("today", to: ["t": "canary in clear"])
        try await first.set("today", to: ["t": "canary"])
        try await first.waitUntilSynced(timeout: Self.patience)
        _ = try await text(second, length: 6)
        async let left: Void = type("abcdefghij", first, atStart: true)
        async let right: Void = type("0123456789", second, atStart: false)
        _ = try await (left, right)
        let both = try await text(first, length: 26)
        #expect(try await text(second, length: 26) == both)
        // "canary" itself has two 'a' and one 'c'.
        #expect(both.filter("abcdefghij".contains).count == 13 && both.filter("0123456789".contains).count == 10)

        let new = try accounts()
        let begun = try await new.beginPairing()
        _ = try await accounts().give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let paired = try await new.open(try #require(try await new.receive(begun)))
        let (three, third) = try await device(paired)
        #expect(try await text(third, length: 26) == both)
        #expect(try await third.keys() == ["today"])
        try await open.waitUntilSynced(timeout: Self.patience)

        let dump = String(decoding: try bench.dump(), as: Unicode.ASCII.self)
        #expect(dump.contains("canary in clear"), "what is open can be found, so the search finds")
        #expect(!dump.contains("\"canary\"") && !dump.contains(both))
        for session in [one, two, three] { await session.close() }

        let changed = try await accounts().changePassword(
            of: ann.account, accessToken: ann.accessToken, from: KeyBench.secret("one"), to: KeyBench.secret("two"))
        let words = try RecoveryWords.words(ann.account.accessKey.secret)
        let back = try await accounts().recover(
            name: "ann", accessKey: try AccessKey(words: words), newPassword: KeyBench.secret("three"))
        for login in [back, try await signIn("three")] {
            let (session, diary) = try await device(login)
            #expect(try await text(diary, length: 26) == both)
            await session.close()
        }
        #expect(changed.account.bundle == back.account.bundle)
    }

    @Test(
        "a restarted program opens its store with the keys that it kept, and nothing sealed without keys"
    )
    func restart() async throws {
        let folder = try TemporaryFolder()
        let store = StoreLocation.file(folder.file("ann.db"))
        let ann = try await signUp()
        let kept = try DeviceKeys(ann.account).text
        var session = try await bench.notes(store: store).resume(ann)
        var diary = try await session.bucket("diary", sealed: true)
        try await diary.set("today", to: ["t": "x"])
        try await diary.waitUntilSynced(timeout: Self.patience)
        await session.sync.goOffline()
        try await diary.set("later", to: ["t": "y"])
        await session.close()

        session = try await bench.notes(store: store).resumeSession(
            accessToken: ann.accessToken, username: "ann", userId: ann.account.user)
        #expect(await Self.refusal { _ = try await session.bucket("diary", sealed: true) } == .noKeys)
        #expect(await Self.refusal { _ = try await session.bucket("diary") } == .sealed, "never in clear")
        try await session.useKeys(of: try DeviceKeys(text: kept).open())
        diary = try await session.bucket("diary", sealed: true)
        #expect(try await diary.keys() == ["later", "today"])
        try await diary.waitUntilSynced(timeout: Self.patience)
        await session.close()

        let (other, there) = try await device(try await signIn())
        try await there.waitUntilSynced(timeout: Self.patience)
        #expect(try await there.get("later") == ["t": "y"])
        await other.close()
    }

    @Test(
        "no session opens in the clear a bucket that the bundle names as sealed; keys of others open none"
    )
    func modes() async throws {
        let ann = try await signUp()
        let kept = try await accounts().keepSealed("diary", of: ann.account, accessToken: ann.accessToken)
        #expect(kept.bundle.buckets["diary"] == .init(mode: "sealed", epoch: 0))
        #expect(
            try await accounts().keepSealed("diary", of: kept, accessToken: ann.accessToken).version == kept.version)
        let session = try await bench.notes().resume(kept, accessToken: ann.accessToken)
        #expect(await Self.refusal { _ = try await session.bucket("diary") } == .sealed)
        let newer = try await accounts().update(kept, accessToken: ann.accessToken) { bundle in
            bundle.buckets["public"] = .init(mode: "open", epoch: 0)
            bundle.buckets["diary"]?.epoch = 2
            bundle.buckets["far"] = .init(mode: "sealed", epoch: .max)
        }
        try await session.useKeys(of: newer)
        #expect(await Self.refusal { _ = try await session.bucket("public", sealed: true) } == .sealed)
        #expect(await Self.refusal { _ = try await session.bucket("far", sealed: true) } == .limit)
        #expect(await Self.refusal { _ = try await session.bucket("no name", sealed: true) } == .invalidName)
        let diary = try await session.bucket("diary", sealed: true)
        try await diary.set("k", to: ["t": "of epoch 2"])
        try await diary.waitUntilSynced(timeout: Self.patience)
        let eve = try await accounts().signUp(name: "eve", password: KeyBench.secret("two"))
        #expect(await Self.refusal { try await session.useKeys(of: eve.account) } == .sealed)
        let refused = await KeyBench.failure {
            _ = try await self.accounts().keepSealed("public", of: newer, accessToken: ann.accessToken)
        }
        guard case .unusable? = refused else { throw ClientError(.sealed, "\(refused as Any)") }
        await session.close()
        // Names are always those of epoch 0; a device that knows no other epoch finds the object and reports it.
        let old = try await bench.notes().resume(kept, accessToken: ann.accessToken)
        let there = try await old.bucket("diary", sealed: true)
        // A read-only object counts as refused.
        #expect(await Self.refusal { try await there.waitUntilSynced(timeout: Self.patience) } == .refused)
        #expect(try await there.get("k") == nil)
        #expect(try await there.problem(of: "k") != nil)
        await old.close()
    }

    @Test("a partner's user has sealed buckets with keys that the partner does not have")
    func partner() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        let keys = try await bench.app().accounts(stretch: KeyBench.weak).openKeys(
            ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("content")), makes: true)
        guard case .open(let account, _) = keys else { throw ClientError(.unauthorized, "closed") }
        for round in 0..<2 {
            let session = try await bench.app().createSession(
                accessToken: token, entityId: user.entity, partnerId: bench.partner)
            #expect(await Self.refusal { _ = try await session.bucket("diary", sealed: true) } == .noKeys)
            try await session.useKeys(of: account)
            let diary = try await session.bucket("diary", sealed: true)
            if round == 0 { try await diary.set("today", to: ["t": "hidden"]) }
            try await diary.waitUntilSynced(timeout: Self.patience)
            #expect(try await diary.get("today") == ["t": "hidden"])
            await session.close()
        }
    }

    @Test(
        "a bucket that turns out to be sealed is neither read nor sent in the clear; waiting edits go out sealed",
        arguments: [true, false])
    func turned(isOpenFirst: Bool) async throws {
        let ann = try await signUp()
        let one = try await bench.notes().resume(ann)
        let plans = try await one.bucket("diary")
        if isOpenFirst { try await plans.waitUntilSynced(timeout: Self.patience) }
        if !isOpenFirst {
            await one.sync.goOffline()
            try await plans.set("draft", to: ["t": "waits"])
        }
        let events = await plans.changes
        let (two, diary) = try await device(try await signIn())
        try await diary.set("today", to: ["t": "sealed"])
        try await diary.waitUntilSynced(timeout: Self.patience)
        await one.sync.goOnline()
        for await event in events {
            guard case .unavailable(let error) = event else { continue }
            #expect(error.code == .sealed)
            break
        }
        #expect(await Self.refusal { try await plans.waitUntilSynced(timeout: Self.patience) } == .sealed)
        #expect(try await plans.keys() == (isOpenFirst ? [] : ["draft"]))
        let same = try await one.bucket("diary", sealed: true)
        try await same.waitUntilSynced(timeout: Self.patience)
        #expect(try await same.get("today") == ["t": "sealed"])
        #expect(await Self.refusal { _ = try await one.bucket("diary") } == .sealed, "it never becomes clear again")
        if !isOpenFirst {
            let (three, third) = try await device(try await signIn())
            try await third.waitUntilSynced(timeout: Self.patience)
            #expect(try await third.get("draft") == ["t": "waits"])
            await three.close()
            #expect(!String(decoding: try bench.dump(), as: Unicode.ASCII.self).contains("waits"))
        }
        await one.close()
        await two.close()
    }
}
