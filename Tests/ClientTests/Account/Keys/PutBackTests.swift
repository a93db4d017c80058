import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("An account's keys after a restore of the server", .serialized, .timeLimit(.minutes(15)))
struct PutBackTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func calls(_ device: String, app: String = "notes") throws -> ServerCalls {
        try ServerCalls(
            address: bench.address, app: app, apiKey: app == "notes" ? bench.accountKey : bench.apiKey,
            deviceId: device, options: .init())
    }

    private func accounts(_ device: String = "d/1", app: String = "notes", line: BadLine? = nil) throws -> Accounts {
        let line = try line ?? BadLine(try calls(device, app: app)) { _, _ in .none }
        return Accounts(app: app, device: device, api: try line.api())
    }

    private func noted(
        _ buckets: String..., in account: OpenAccount, _ token: String, app: String = "notes"
    ) async throws -> OpenAccount {
        var account = account
        for bucket in buckets {
            account = try await accounts(app: app).keepSealed(bucket, of: account, accessToken: token)
        }
        return account
    }

    private func opened(_ result: SignInResult) throws -> SignedIn {
        guard case .open(let login) = result else { throw AccountError.locked }
        return login
    }

    private func buckets(_ account: OpenAccount) -> [String] { account.bundle.buckets.keys.sorted() }

    /// An account at version 4, of which the server has version 2.
    private struct Restored {
        let ann: SignedIn
        let newest: OpenAccount
        let backup: AccountServer.StoredBundle
    }

    private func restored() async throws -> Restored {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let old = try await noted("first", in: ann.account, ann.accessToken)
        let backup = try bench.backup(of: old.user)
        let newest = try await noted("diary", "letters", in: old, ann.accessToken)
        try bench.restore(backup)
        return Restored(ann: ann, newest: newest, backup: backup)
    }

    @Test(
        "a put-back on one of two stuck devices frees both, and keeps a bucket noted since the restore")
    func frees() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let old = try await noted("first", in: ann.account, ann.accessToken)
        let backup = try bench.backup(of: old.user)
        let newest = try await noted("diary", "letters", in: old, ann.accessToken)
        let second = try opened(
            try await accounts("d/2").signIn(name: "ann", password: KeyBench.secret("one")))
        #expect(newest.version == 4 && second.account == newest)
        try bench.restore(backup)

        let stuck = AccountError.rolledBack(seen: 4, shown: 2)
        for (device, login) in [("d/1", ann), ("d/2", second)] {
            for what in 0..<3 {
                let error = await KeyBench.failure {
                    let accounts = try self.accounts(device)
                    switch what {
                    case 0: _ = try await accounts.refresh(newest, accessToken: login.accessToken)
                    case 1: _ = try await accounts.keepSealed("more", of: newest, accessToken: login.accessToken)
                    default:
                        _ = try await accounts.signIn(
                            name: "ann", password: KeyBench.secret("one"), known: try DeviceKeys(newest))
                    }
                }
                #expect(error == stuck, "\(device) \(what)")
            }
        }
        // A device that has seen nothing notes a bucket in between.
        let fresh = try opened(
            try await accounts("d/3").signIn(name: "ann", password: KeyBench.secret("one")))
        let there = try await noted("recipes", in: fresh.account, fresh.accessToken)
        #expect(there.version == 3)

        let back = try await accounts().putBack(newest, accessToken: ann.accessToken)
        #expect(back.account.version == 5 && back.versions == 2)
        #expect(buckets(back.account) == ["diary", "first", "letters", "recipes"])
        for (seen, token) in [
            (back.account, ann.accessToken), (newest, second.accessToken), (there, fresh.accessToken),
        ] {
            #expect(try await accounts().refresh(seen, accessToken: token).bundle == back.account.bundle)
        }
        let changed = try await accounts("d/2").changePassword(
            of: newest, accessToken: second.accessToken, from: KeyBench.secret("one"), to: KeyBench.secret("two"))
        let again = try opened(
            try await accounts().signIn(
                name: "ann", password: KeyBench.secret("two"), known: try DeviceKeys(back.account)))
        #expect(again.account.bundle == back.account.bundle)
        #expect(try await noted("more", in: changed.account, changed.accessToken).version == 6)
    }

    @Test(
        "a put-back writes nothing that the server has, and what it lacks under a greater version"
    )
    func nothingToDo() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let same = try await accounts().putBack(ann.account, accessToken: ann.accessToken)
        #expect(same.versions == 0 && same.account == ann.account)
        let more = try await noted("first", in: ann.account, ann.accessToken)
        let newer = try await accounts().putBack(ann.account, accessToken: ann.accessToken)
        #expect(newer.versions == 0 && newer.account == more)
        // Another device has written the restored bundle up to the version that this one has seen, and beyond.
        let backup = try bench.backup(of: more.user)
        let kept = try await noted("diary", in: more, ann.accessToken)
        for (others, number) in [(["x"], 3), (["x", "y"], 4)] {
            try bench.restore(backup)
            var theirs = more
            for other in others { theirs = try await noted(other, in: theirs, ann.accessToken) }
            #expect(theirs.version == number)
            let back = try await accounts().putBack(kept, accessToken: ann.accessToken)
            #expect(back.versions == 1 && back.account.version == number + 1)
            #expect(buckets(back.account) == ["diary", "first"] + others)
        }
    }

    @Test("a put-back refuses a bundle that is not the account's, and writes nothing")
    func lies() async throws {
        let world = try await restored()
        let (newest, token) = (world.newest, world.ann.accessToken)
        let key = newest.accessKey
        func shown(_ bundle: AccountBundle, _ version: UInt64, _ key: AccessKey) throws -> JSONObject {
            let place = AccountPlace(app: "notes", user: newest.user, version: version)
            return [
                "version": .number(JSONNumber(Int64(version))),
                "bundle": .string(Base64.encodeURL(try place.seal(bundle: bundle.text(), with: key))),
            ]
        }
        let newestShown = try shown(newest.bundle, 4, key)
        let lies: [(String, JSONObject, AccountError)] = [
            ("another access key", try shown(newest.bundle, 2, .random()), .doesNotOpen),
            ("another access key, newer", try shown(newest.bundle, 5, .random()), .keyChanged),
            ("other secrets", try shown(.make(), 2, key), .otherAccount),
            ("other secrets, newer", try shown(.make(), 9, key), .otherAccount),
            ("another number", newestShown.setting(["version": 2]), .doesNotOpen),
            ("another number, newer", newestShown.setting(["version": 5]), .keyChanged),
            ("no bundle", ["version": 0, "bundle": .null], .bundleMissing),
            ("bytes", ["version": 2, "bundle": "AAAA"], .doesNotOpen),
        ]
        for (what, lie, expected) in lies {
            let line = BadLine(try calls("d/1")) { _, request in
                request.method == "GET" ? .says { _ in lie } : .none
            }
            let error = await KeyBench.failure {
                _ = try await self.accounts(line: line).putBack(newest, accessToken: token)
            }
            #expect(error == expected, "\(what)")
            #expect(line.paths == ["bundle"], "\(what): it was read and not written")
        }
        let now = try bench.backup(of: newest.user)
        #expect(now.version == world.backup.version && now.content == world.backup.content)
    }

    @Test("an interrupted put-back is repeated, and ends with everything that both sides had")
    func interrupted() async throws {
        let world = try await restored()
        let token = world.ann.accessToken
        for number in 1...5 {
            for losesAnswer in [false, true] {
                for staysDead in [false, true] {
                    try bench.restore(world.backup)
                    let what = "\(number) \(losesAnswer) \(staysDead)"
                    let line = BadLine(try calls("d/1")) { at, _ in
                        if at == number { return losesAnswer ? .losesAnswer : .losesRequest }
                        return at > number && staysDead ? .losesRequest : .none
                    }
                    var first: KeysPutBack?
                    let error = await KeyBench.failure {
                        first = try await self.accounts(line: line).putBack(world.newest, accessToken: token)
                    }
                    switch error {
                    case nil: #expect(first?.account.version == 5, "\(what)")
                    case .server?, .unknown?: #expect(number < 5, "\(what)")
                    default: Issue.record("\(what): \(error as Any)")
                    }
                    let again = try await accounts().putBack(world.newest, accessToken: token)
                    #expect(again.account.bundle == world.newest.bundle && again.account.version >= 4, "\(what)")
                    let now = try await accounts().refresh(world.newest, accessToken: token)
                    #expect(now == again.account, "\(what)")
                }
            }
        }
    }

    /// Accounts on a connection on which another device acts before each write.
    private func crowded(_ before: @escaping @Sendable (_ write: Int) async throws(ClientError) -> Void) throws
        -> Accounts
    {
        let (calls, writes) = (try calls("d/1"), Counter())
        let api = try AccountAPIClient(stretch: KeyBench.weak) { request throws(ClientError) in
            if request.method == "PUT" { try await before(writes.next()) }
            return try await calls.ask(request)
        }
        return Accounts(app: "notes", device: "d/1", api: api)
    }

    private final class Counter: Sendable {
        private let count = Mutex<Int>(0)
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test("concurrent writes of another device are kept in a put-back; after five lost races it is busy")
    func conflicts() async throws {
        let world = try await restored()
        let token = world.ann.accessToken
        let fresh = try opened(
            try await accounts("d/3").signIn(name: "ann", password: KeyBench.secret("one")))
        let others = try accounts("d/3")
        let note: @Sendable (Int) async throws(ClientError) -> Void = { number throws(ClientError) in
            do throws(AccountError) {
                _ = try await others.keepSealed("n\(number)", of: fresh.account, accessToken: fresh.accessToken)
            } catch { throw ClientError(.refused, "\(error)") }
        }
        // Before the first write, and before the second one that succeeds.
        let back = try await crowded { number throws(ClientError) in
            if number == 1 || number == 3 { try await note(number) }
        }.putBack(world.newest, accessToken: token)
        #expect(buckets(back.account) == ["diary", "first", "letters", "n1", "n3"])
        #expect(try await accounts().refresh(world.newest, accessToken: token) == back.account)

        try bench.restore(world.backup)
        let error = await KeyBench.failure {
            _ = try await self.crowded(note).putBack(world.newest, accessToken: token)
        }
        #expect(error == .busy)
        let now = try await accounts().refresh(fresh.account, accessToken: token)
        #expect(buckets(now) == ["first", "n1", "n2", "n3", "n4", "n5"], "theirs, and nothing of ours")
        let last = try await accounts().putBack(world.newest, accessToken: token)
        #expect(buckets(last.account) == ["diary", "first", "letters", "n1", "n2", "n3", "n4", "n5"])
    }

    @Test("a server that goes back again during a put-back is reported as rolled back")
    func wentBackAgain() async throws {
        let world = try await restored()
        let bench = bench
        let error = await KeyBench.failure {
            _ = try await self.crowded { number throws(ClientError) in
                guard number == 2 else { return }
                do { try bench.restore(world.backup) } catch { throw ClientError(.store, "\(error)") }
            }.putBack(world.newest, accessToken: world.ann.accessToken)
        }
        #expect(error == .rolledBack(seen: 3, shown: 2))
    }

    /// A server that shows an archived bundle in the middle of a put-back, under a version that it chooses.
    private func archived(as shown: Int) async throws -> (text: String, error: AccountError?) {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let clear = ann.account.bundle.text().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        func sealed(_ version: UInt64, _ member: String) throws -> [UInt8] {
            let text = clear.replacing(#""buckets":{}"#, with: #""buckets":{},"x":"\#(member)""#)
            let place = AccountPlace(app: "notes", user: ann.account.user, version: version)
            return try place.seal(bundle: KeyBench.secret(text), with: ann.account.accessKey)
        }
        try bench.restore(
            .init(user: ann.account.user, version: 7, content: try sealed(7, "newest"), isPartners: false))
        let kept = try await accounts().refresh(ann.account, accessToken: ann.accessToken)
        let (first, old) = (try sealed(4, "old"), try sealed(UInt64(shown), "old"))
        let bundle: @Sendable (Int, [UInt8]) -> JSONObject = { version, content in
            ["version": .number(JSONNumber(Int64(version))), "bundle": .string(Base64.encodeURL(content))]
        }
        let line = BadLine(nil) { number, _ in
            switch number {
            case 1: .saysInstead { bundle(4, first) }
            case 2: .saysInstead { bundle(5, []) }
            case 3: .refuses(ClientError(.refused, "written meanwhile", number: 409))
            case 4: .saysInstead { bundle(shown, old) }
            default: .saysInstead { bundle(shown + number - 4, []) }
            }
        }
        var back: KeysPutBack?
        let error = await KeyBench.failure {
            back = try await self.accounts(line: line).putBack(kept, accessToken: ann.accessToken)
        }
        let text = back?.account.bundle.text().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        return (text ?? "", error)
    }

    @Test("a server that shows an archived bundle during a put-back rolls back no member of a later version")
    func archivedMembers() async throws {
        let (text, error) = try await archived(as: 6)
        #expect(error == nil && text.contains(#""x":"newest""#) && !text.contains(#""x":"old""#))
    }

    @Test("other content under the version that the put-back has written last is reported as rolled back")
    func archivedNumber() async throws {
        #expect(try await archived(as: 5).error == .rolledBack(seen: 5, shown: 5))
    }

    @Test("a put-back writes up to a server that is 999 versions behind, and nothing to one that is 1,000 behind")
    func bound() async throws {
        let ann: SignedIn = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let first = try bench.backup(of: ann.account.user)
        for (version, writes): (UInt64, Int) in [(1_000, 1_000), (1_001, 0)] {
            let place = AccountPlace(app: "notes", user: ann.account.user, version: version)
            let sealed: [UInt8] = try place.seal(bundle: ann.account.bundle.text(), with: ann.account.accessKey)
            try bench.restore(
                .init(user: first.user, version: Int64(version), content: sealed, isPartners: false))
            let kept = try await accounts().refresh(ann.account, accessToken: ann.accessToken)
            #expect(kept.version == version)
            // A server that confirms each write.
            let said = Counter()
            let line = BadLine(nil) { _, request in
                let shown = request.method == "GET" ? 1 : said.next() + 1
                return .saysInstead {
                    [
                        "version": .number(JSONNumber(Int64(shown))),
                        "bundle": .string(Base64.encodeURL(first.content)),
                    ]
                }
            }
            var back: KeysPutBack?
            let error = await KeyBench.failure {
                back = try await self.accounts(line: line).putBack(kept, accessToken: ann.accessToken)
            }
            #expect(line.paths.count == 1 + writes && back?.versions == (writes == 0 ? nil : writes))
            guard writes == 0 else { continue }
            guard case .unusable(let what)? = error else { throw ClientError(.refused, "\(error as Any)") }
            #expect(what.contains("1000 versions behind"))
        }
    }

    @Test(
        "a put-back joins both: sealed before open, the larger epoch, the later backup, and every member")
    func joins() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let (user, key) = (ann.account.user, ann.account.accessKey)
        let clear = ann.account.bundle.text().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        func stored(_ version: UInt64, _ buckets: String, _ more: String) throws -> AccountServer.StoredBundle {
            let text = clear.replacing(#""buckets":{}"#, with: #""buckets":{\#(buckets)},\#(more)"#)
            let place = AccountPlace(app: "notes", user: user, version: version)
            return .init(
                user: user, version: Int64(version),
                content: try place.seal(bundle: KeyBench.secret(text), with: key), isPartners: false)
        }
        let sealed: (Int) -> String = { #"{"mode":"sealed","epoch":\#($0)}"# }
        try bench.restore(
            try stored(
                7,
                #""a":{"mode":"open","epoch":2,"mine":1},"b":\#(sealed(5)),"c":\#(sealed(1)),"#
                    + #""e":{"mode":"shut","epoch":0},"f":{"mode":"open","epoch":0},"g":{"mode":"shut","epoch":0}"#,
                #""backup":{"kind":"words","at":50},"x":[1],"y":"mine""#))
        let kept: OpenAccount = try await accounts().refresh(ann.account, accessToken: ann.accessToken)
        try bench.restore(
            try stored(
                4,
                #""a":{"mode":"sealed","epoch":1,"theirs":2},"b":{"mode":"open","epoch":9},"d":\#(sealed(3)),"#
                    + #""e":{"mode":"hidden","epoch":0},"f":{"mode":"hidden","epoch":0},"g":\#(sealed(0))"#,
                #""backup":{"kind":"stone","at":60,"by":"z"},"y":"theirs","z":{"deep":[null]}"#))
        let back = try await accounts().putBack(kept, accessToken: ann.accessToken)
        #expect(back.account.version == 8 && back.versions == 4)
        let text = back.account.bundle.text().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        let joined: JSONObject = try #require(JSONValue(parsing: Array(text.utf8)).objectValue)
        let expected: JSONObject = [
            "a": ["mode": "sealed", "epoch": 2, "mine": 1, "theirs": 2], "b": ["mode": "sealed", "epoch": 9],
            "c": ["mode": "sealed", "epoch": 1], "d": ["mode": "sealed", "epoch": 3],
            // Of two unknown modes the newer version's; sealed before all.
            "e": ["mode": "shut", "epoch": 0], "f": ["mode": "hidden", "epoch": 0],
            "g": ["mode": "sealed", "epoch": 0],
        ]
        #expect(joined["buckets"] == .object(expected))
        #expect(joined["backup"] == ["kind": "stone", "at": 60, "by": "z"])
        #expect(joined["x"] == [1] && joined["z"] == ["deep": [.null]])
        #expect(joined["y"] == "mine", "of two unknown members the newer version's")
        #expect(back.account.bundle.vaultSecret == ann.account.bundle.vaultSecret)
    }

    @Test("more buckets in both together than a bundle holds are an error, and nothing is written")
    func tooMany() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        func filled(_ letter: String) async throws -> OpenAccount {
            try await accounts().update(ann.account, accessToken: ann.accessToken) { bundle in
                for number in 0..<300 { bundle.buckets["\(letter)\(number)"] = .init(mode: "sealed", epoch: 0) }
            }
        }
        let first = try bench.backup(of: ann.account.user)
        let kept = try await filled("a")
        try bench.restore(first)
        _ = try await filled("b")
        let theirs = try bench.backup(of: ann.account.user)
        let error = await KeyBench.failure {
            _ = try await self.accounts().putBack(kept, accessToken: ann.accessToken)
        }
        guard case .unusable(let what)? = error else { throw ClientError(.refused, "\(error as Any)") }
        #expect(what.contains("exceed the limits of a bundle"))
        let now = try bench.backup(of: ann.account.user)
        #expect(now.version == theirs.version && now.content == theirs.content)
    }

    @Test("a login after a restore is made by the password, and accepts no other parameters, account or bundle")
    func login() async throws {
        let world = try await restored()
        let known = try DeviceKeys(world.newest)
        let token = try await accounts().signInAfterRestore(password: KeyBench.secret("one"), known: known)
        let wrong = await KeyBench.failure {
            _ = try await self.accounts().signInAfterRestore(password: KeyBench.secret("two"), known: known)
        }
        #expect(wrong == .wrongPassword(isChanged: false))
        for (path, change, expected): (String, JSONObject, AccountError) in [
            ("prelogin", ["p": 2], .downgrade("other parameters for the same password")),
            ("login", ["userid": "somebody"], .otherAccount), ("login", ["bundle": "AAAA"], .doesNotOpen),
        ] {
            let line = BadLine(try calls("d/1")) { _, request in
                request.path == path ? .says { $0.setting(change) } : .none
            }
            let error = await KeyBench.failure {
                _ = try await self.accounts(line: line).signInAfterRestore(
                    password: KeyBench.secret("one"), known: known)
            }
            #expect(error == expected)
            #expect(line.paths.last == path)
        }
        let back = try await accounts().putBack(try known.open(), accessToken: token)
        #expect(back.account.version == 5 && back.account.bundle == world.newest.bundle)
    }

    @Test("a partner's user's keys are put back, too, and a server with other keys for them is refused")
    func partner() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        let made = try await accounts(app: "app").openKeys(
            ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("content")), makes: true)
        guard case .open(let first, isNew: true) = made else { throw ClientError(.unauthorized, "not made") }
        let backup = try bench.backup(of: user.entity, isPartners: true)
        let newest = try await noted("diary", "letters", in: first, token, app: "app")
        try bench.restore(backup)
        let other = try await noted("recipes", in: first, token, app: "app")
        let stuck = await KeyBench.failure {
            _ = try await self.accounts(app: "app").openKeys(
                ofPartnerUser: user.entity, accessToken: token, .none, known: try DeviceKeys(newest), makes: false)
        }
        #expect(stuck == .rolledBack(seen: 3, shown: 2) && other.version == 2)
        let line = BadLine(try calls("d/1", app: "app")) { _, request in
            request.method == "GET" ? .says { $0.setting(["version": 1]) } : .none
        }
        let refused = await KeyBench.failure {
            _ = try await self.accounts(app: "app", line: line).putBack(newest, accessToken: token)
        }
        #expect(refused == .doesNotOpen && line.paths == ["bundle"])
        let back = try await accounts(app: "app").putBack(newest, accessToken: token)
        #expect(back.account.version == 4 && buckets(back.account) == ["diary", "letters", "recipes"])
        for opener: KeyOpener in [.none, .passphrase(KeyBench.secret("content"))] {
            let there = try await accounts(app: "app").openKeys(
                ofPartnerUser: user.entity, accessToken: token, opener, known: try DeviceKeys(newest), makes: false)
            guard case .open(let open, isNew: false) = there else { throw ClientError(.unauthorized, "closed") }
            #expect(open.bundle == back.account.bundle)
        }
        // Other content under the version that a device has seen.
        try bench.restore(backup)
        let lacking = try await accounts(app: "app").putBack(newest, accessToken: token)
        #expect(lacking.account.version == 4 && buckets(lacking.account) == ["diary", "letters"])
        for opener: KeyOpener in [.none, .passphrase(KeyBench.secret("content"))] {
            let reported = await KeyBench.failure {
                _ = try await self.accounts(app: "app").openKeys(
                    ofPartnerUser: user.entity, accessToken: token, opener, known: try DeviceKeys(back.account),
                    makes: false)
            }
            #expect(reported == .rolledBack(seen: 4, shown: 4))
        }
    }
}
