import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// What commands that run at the same time leave of an account's keys in a profile.
@Suite("Keys that several commands keep")
struct KeptKeysTests {
    private let bundle = AccountBundle.make().text()

    /// The keys as a device has them.
    private func keys(
        _ key: AccessKey, version: UInt64, next: AccessKey? = nil, user: String = "u"
    ) throws -> DeviceKeys {
        let text = try Self.text(key, version, bundle, user: user)
        let kept = try DeviceKeys(text: SecureBytes(copying: Array(text.utf8)))
        return try DeviceKeys(kept.open(), next: next)
    }

    private static func text(
        _ key: AccessKey, _ version: UInt64, _ bundle: SecureBytes, user: String = "u"
    ) throws -> String {
        let place = AccountPlace(app: "notes", user: user, version: version)
        let sealed = Base64.encodeURL(try place.seal(bundle: bundle, with: key))
        let secret = Base64.encodeURL(key.secret.withUnsafeBytes { Array($0) })
        return #"{"format":1,"app":"notes","user":"\#(user)","name":"ann","access_key":"\#(secret)","#
            + #""bundle":"\#(sealed)","version":\#(version)}"#
    }

    private let one = AccessKey.random()
    private let two = AccessKey.random()

    @Test("a command that read before another wrote puts back neither an older version nor an older key")
    func older() throws {
        let before = try keys(one, version: 3).open()
        #expect(try KeptKeys.merged(before, .stays, over: keys(one, version: 4)) == nil)
        #expect(try KeptKeys.merged(before, .stays, over: keys(two, version: 4)) == nil)
        #expect(try KeptKeys.merged(before, .dropped, over: keys(two, version: 4)) == nil)
        let later = try keys(two, version: 4).open()
        let written = try #require(try KeptKeys.merged(later, .stays, over: keys(one, version: 3)))
        #expect(written.accessKey == two && written.version == 4)
    }

    @Test("kept keys are not overwritten by others of the same number; damaged ones are written again")
    func sameNumber() throws {
        let kept = try keys(one, version: 4).open()
        var other = try keys(two, version: 4).open()
        #expect(try KeptKeys.merged(other, .stays, over: DeviceKeys(kept)) == nil, "another access key")
        other = try DeviceKeys(
            text: SecureBytes(copying: Array(Self.text(one, 4, AccountBundle.make().text()).utf8))
        ).open()
        #expect(try KeptKeys.merged(other, .stays, over: DeviceKeys(kept)) == nil, "another content")
        #expect(try KeptKeys.merged(kept, .stays, over: DeviceKeys(kept))?.version == 4)
        let damaged = try DeviceKeys(
            text: SecureBytes(
                copying: Array(Self.text(one, 4, bundle).replacing(#""version":4"#, with: #""version":3"#).utf8)))
        #expect(throws: AccountError.doesNotOpen) { try damaged.open() }
        let same = try keys(one, version: 3).open()
        #expect(try KeptKeys.merged(same, .stays, over: damaged)?.open() == same)
    }

    @Test("a profile keeps its account's newer keys, and a command that brings others fails with the way out")
    func reported() throws {
        let folder = TemporaryFolder("kept")
        let home = try ProfileHome(["THICKET_HOME": folder.path])
        try home.makeFolder("p")
        let newest = try keys(one, version: 6).open()
        try KeyCall.keep(newest, home, "p", known: nil)
        let renewed = try keys(two, version: 4).open()
        let older = try keys(one, version: 4).open()
        for (brought, known) in [
            (renewed, nil), (renewed, try DeviceKeys(older)), (older, nil),
        ] {
            for isLate in [false, true] {
                let failure = #expect(throws: Failure.self) {
                    if isLate {
                        try KeyCall.keep(brought, home, "p", known: known)
                    } else {
                        try KeyCall.expectPlace(for: brought, home, "p", known: known)
                    }
                }
                #expect(failure?.text.contains("--profile OTHER") == true && failure?.code == .refused)
            }
        }
        // Written by a command at the same time, which has compared the server with what it knew.
        try KeyCall.expectPlace(for: older, home, "p", known: try DeviceKeys(older))
        try KeyCall.keep(older, home, "p", known: try DeviceKeys(older))
        #expect(try home.readKeys("p")?.version == 6)
    }

    @Test("a key that is to follow stays through other writes, and goes when it has followed or was refused")
    func next() throws {
        let account: OpenAccount = try keys(one, version: 3).open()
        let kept: DeviceKeys = try #require(
            try KeptKeys.merged(account, .follows(two), over: keys(one, version: 3)))
        #expect(kept.next == two && kept.accessKey == one)
        let beside = try keys(one, version: 5).open()
        #expect(try KeptKeys.merged(beside, .stays, over: kept)?.next == two)
        #expect(try KeptKeys.merged(account, .dropped, over: kept)?.next == nil)
        let followed = try #require(
            try KeptKeys.merged(try keys(two, version: 4).open(), .stays, over: kept))
        #expect(followed.accessKey == two && followed.next == nil)
        // If newer keys under the same access key are stored, it is those that are stored with the next key.
        let newer = try #require(
            try KeptKeys.merged(account, .follows(two), over: keys(one, version: 9)))
        #expect(newer.version == 9 && newer.next == two)
    }

    @Test("no next key is stored when the access key was changed meanwhile")
    func changed() throws {
        let account = try keys(one, version: 3).open()
        #expect(throws: AccountError.keyChanged) {
            try KeptKeys.merged(account, .follows(.random()), over: keys(two, version: 4))
        }
    }

    @Test("another account's keys are not looked at: a login as another user keeps its own keys")
    func others() throws {
        let account = try keys(one, version: 3).open()
        for kept in [nil, try keys(two, version: 9, next: one, user: "v")] {
            let written = try #require(try KeptKeys.merged(account, .stays, over: kept))
            #expect(written.user == "u" && written.accessKey == one && written.next == nil)
        }
    }

    @Test("one command at a time changes the access key; a command that writes keys waits for another that does")
    func locks() throws {
        let folder = TemporaryFolder("locks")
        let first = try FolderLock(folder.path, "renew.lock", waits: false)
        let error = #expect(throws: Failure.self) {
            try FolderLock(folder.path, "renew.lock", waits: false)
        }
        #expect(error?.code == .storeInUse)
        first.end()
        try FolderLock(folder.path, "renew.lock", waits: true).end()
    }
}
