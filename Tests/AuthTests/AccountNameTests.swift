import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// User names with an invisible character at an end: no new account gets one, existing accounts keep theirs.
@Suite("Account names with invisible ends")
struct AccountNameTests {
    private let bench: AccountBench

    init() throws { bench = try AccountBench() }

    private static let unseen: [(name: String, problem: String)] = [
        ("ann ", "ends with a blank (character 4); leave it out"), (" ann", "begins with a blank; leave it out"),
        ("ann\u{A0}", "ends with U+00A0 (character 4); leave it out"),
        ("\u{FEFF}ann", "begins with U+FEFF; leave it out"),
        ("ann\u{200B}", "ends with U+200B (character 4); leave it out"),
        ("ann\u{202E}", "ends with U+202E (character 4); leave it out"),
    ]

    @Test("no account gets such a name, by password, by keys or by an update; the message names the character")
    func none() throws {
        #expect(try bench.create("bob").status == 200)
        for (name, problem) in Self.unseen {
            for answer in [
                try bench.create(name), try bench.post("create/", "username=\(name)&password=open+sesame"),
                try bench.post(
                    "update/", #"{"username":"bob","password":"open sesame","new_username":"\#(name)"}"#),
            ] {
                #expect(answer.status == 400 && answer.text == "the user name \(problem)", "\(answer.text)")
            }
            let keyed = try bench.post("auth/signup", SealedBodies.signup(name))
            #expect(keyed.status == 400 && keyed.member("code") == .string("invalid_request"))
            #expect(keyed.member("message") == .string("the user name \(problem)"))
        }
        #expect(try bench.create("ann").status == 200, "the name was free")
    }

    @Test("a login reports what is wrong with the name: a blank end, a control character, no bytes, 255 bytes")
    func logins() throws {
        for (name, problem) in [
            ("ann ", "ends with a blank (character 4); leave it out"), (" ann", "begins with a blank; leave it out"),
            (#"a\nn"#, "holds U+000A (character 2), which is not admitted"),
            ("", "is empty"),
            (String(repeating: "x", count: 255), "is 255 bytes long, the maximum is 254"),
        ] {
            let answer = try bench.authorize(name)
            #expect(answer.status == 400 && answer.text == "the user name \(problem)")
            for keyed in [
                try bench.post("auth/login", SealedBodies.login(name)),
                try bench.post("auth/prelogin", #"{"u":"\#(name)"}"#),
            ] {
                #expect(keyed.status == 400 && keyed.member("message") == .string("the user name \(problem)"))
            }
        }
        #expect(
            try bench.post("authorize/", #"{"password":"open sesame"}"#).text == "username and password are required")
    }

    /// Gives an account a name that requests no longer accept.
    private func rename(_ name: String, to other: String) throws {
        var account = try #require(try bench.store.account(named: name, in: "notes"))
        account.name = other
        #expect(try bench.store.change(account, from: account.proof, endsTokens: false, token: nil, now: 5))
    }

    @Test("an existing account with such a name logs in, changes its password and name, and can be deleted")
    func existing() throws {
        #expect(try bench.create("ann").status == 200)
        try rename("ann", to: "ann\u{A0}")
        #expect(try bench.authorize("ann").status == 401, "that is another name")
        let answer = try bench.authorize("ann\u{A0}")
        #expect(answer.status == 200)
        #expect(try answer.string("username") == "ann\u{A0}")
        #expect(
            try bench.post(
                "update/", #"{"username":"ann\#u{A0}","password":"open sesame","new_password":"other one"}"#
            ).status == 200)
        #expect(try bench.authorize("ann\u{A0}", "other one").status == 200)
        #expect(
            try bench.post(
                "update/", #"{"username":"ann\#u{A0}","password":"other one","new_username":"ann"}"#
            ).status == 200)
        #expect(try bench.authorize("ann", "other one").status == 200)
        try rename("ann", to: "ann\u{A0}")
        #expect(
            try bench.post("delete/", #"{"username":"ann\#u{A0}","password":"other one"}"#).status == 200)
    }

    @Test("an existing account with such a name logs in by keys, and upgrades to keys under no other such name")
    func existingKeys() throws {
        #expect(try bench.post("auth/signup", SealedBodies.signup("ann")).status == 200)
        try rename("ann", to: "ann\u{200B}")
        #expect(try bench.post("auth/prelogin", #"{"u":"ann\#u{200B}"}"#).status == 200)
        #expect(try bench.post("auth/login", SealedBodies.login("ann\u{200B}")).status == 200)
        #expect(try bench.create("bob").status == 200)
        try rename("bob", to: "bob\u{A0}")
        func upgrade(to name: String) throws -> HTTPResponse {
            let old =
                #","username":"bob\#u{A0}","password":"open sesame","old_salt":"\#(SealedBodies.salt)","#
                + #""old_access":"\#(SealedBodies.key(5, count: 61))""#
            return try bench.post("auth/upgrade", SealedBodies.signup(name, words: 7, more: old))
        }
        let other = try upgrade(to: "rob\u{A0}")
        #expect(other.status == 400 && other.text.contains("ends with U+00A0 (character 4); leave it out"))
        #expect(try upgrade(to: "bob\u{A0}").status == 200)
        #expect(try bench.post("auth/login", SealedBodies.login("bob\u{A0}")).status == 200)
    }

    @Test("a partner's new user gets no such name; an existing user that has one logs in")
    func partners() throws {
        let partners = try CredentialBench()
        for (name, problem) in Self.unseen {
            let answer = try partners.register(name)
            #expect(answer.status == 400)
            #expect(partners.member("message", of: answer)?.stringValue == "username \(problem).")
        }
        #expect(try partners.login("ann ").status == 403, "no user has that name")
        let salt = [UInt8](repeating: 7, count: PasswordVerifier.saltBytes)
        let hash = try #require(partners.service.derive(Array("correct horse".utf8), salt))
        let user = NewUser(
            partner: partners.partner, entity: "e-9", partnerEntity: "password:e-9", username: "ann ", phone: "",
            verifier: PasswordVerifier(salt: salt, hash: hash))
        #expect(try partners.store.add(user, now: 0) != nil)
        #expect(try partners.login("ann ").status == 200)
        let control = try partners.login(#"a\u001b"#)
        #expect(control.status == 400)
        #expect(
            partners.member("message", of: control)?.stringValue
                == "username holds U+001B (character 2), which is not admitted.")
    }
}
