import Testing
import ThicketClient
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol
import ThicketTestServer

@testable import ThicketServer

/// A device that requires a witness, a witness, and a server: everything that people run.
@Suite("Key books: a required witness at a real server", .timeLimit(.minutes(10)))
struct WitnessBookTests {
    @Test("a device believes the log once its witness has confirmed it, and not before")
    func required() async throws {
        let key = Ed25519.SigningKey.random()
        let bench = try PeopleBench(witnesses: [key.verifyingKey])
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let book = try await bob.session.people()
        try await book.requireWitness(key.verifyingKey.octets)
        await #expect(throws: PeopleError.self) { _ = try await book.keys(of: ann.user) }
        let token = await ann.session.accessToken
        let port = bench.port
        let run = WitnessRun(
            app: "notes", key: key,
            ask: { (method, path, body) throws(WitnessRun.Failure) in
                do {
                    let answer = try HTTPPeer.ask(
                        port, method, "/1/notes/" + path, ["x-simperium-token": token],
                        body: String(decoding: body, as: UTF8.self))
                    return WitnessRun.Answer(status: answer.status, body: Array(answer.body.utf8))
                } catch { throw WitnessRun.Failure("\(error)") }
            }, keep: { (_) throws(WitnessRun.Failure) in })
        guard case .confirmed = try run.run(nil, now: UInt64(SystemClock.unixMilliseconds())) else {
            Issue.record("not confirmed")
            return
        }
        #expect(try await book.keys(of: ann.user).user == ann.user.text)
        for person in [ann, bob] { await person.session.close() }
    }
}
