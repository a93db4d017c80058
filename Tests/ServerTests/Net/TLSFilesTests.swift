import Glibc
import Testing
@testable import ThicketNet
import ThicketTestSupport

@testable import ThicketServer

/// Certificate and key files as operators give them.
@Suite(
    "Certificates and keys", .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct TLSFilesTests {
    private let folder = TemporaryFolder()

    private func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    private func write(_ name: String, _ text: String) {
        let file: Int32 = creat(path(name), 0o600)
        _ = Glibc.write(file, text, text.utf8.count)
        close(file)
    }

    private func problem(_ certificate: String, _ key: String) -> TLSError? {
        do throws(TLSError) {
            _ = try TLSContext(TLSFiles(certificate: certificate, key: key))
            return nil
        } catch {
            return error
        }
    }

    @Test("an unusable certificate or key is refused with the file's name, the reason and a remedy")
    func refusals() throws {
        SecureEdge.make(certificate: path("a.pem"), key: path("a.key"))
        SecureEdge.make(certificate: path("b.pem"), key: path("b.key"))
        SecureEdge.run(["pkey", "-in", path("a.key"), "-aes128", "-passout", "pass:x", "-out", path("locked.key")])
        SecureEdge.make(certificate: path("weak.pem"), key: path("weak.key"), kind: ["rsa:1024"])
        write("text", "no certificate\n")
        write("empty", "")
        #expect(problem(path("a.pem"), path("a.key")) == nil)
        let table: [(String, String, String, String)] = [
            (path("none.pem"), path("a.key"), path("none.pem"), "No such file"),
            (path("a.pem"), path("none.key"), path("none.key"), "No such file"),
            (path("text"), path("a.key"), path("text"), "no usable certificate"),
            (path("empty"), path("a.key"), path("empty"), "no usable certificate"),
            (path("a.pem"), path("text"), path("text"), "no usable private key"),
            (path("a.key"), path("a.pem"), path("a.key"), "no usable certificate"),
            (path("a.pem"), path("b.key"), path("b.key"), "does not belong to"),
            (path("a.pem"), path("locked.key"), path("locked.key"), "requires a passphrase"),
            (path("weak.pem"), path("weak.key"), path("weak.pem"), "no usable certificate"),
            (path("a.pem"), "none", "tls-cert, tls-key", "one of the two is not set"),
            ("none", path("a.key"), "tls-cert, tls-key", "one of the two is not set"),
        ]
        for (certificate, key, named, said) in table {
            let error: TLSError? = problem(certificate, key)
            #expect(error?.path == named, "\(error?.description ?? "\(certificate) with \(key) was taken")")
            #expect(error?.problem.contains(said) == true, "\(error?.description ?? "")")
            #expect(error?.remedy.isEmpty == false)
        }
    }

    @Test("the certificate's name and expiry are known; RSA works as well as elliptic curves")
    func facts() throws {
        SecureEdge.make(certificate: path("r.pem"), key: path("r.key"), kind: ["rsa:2048"], name: "rsa.example")
        let context = try TLSContext(TLSFiles(certificate: path("r.pem"), key: path("r.key")))
        #expect(context.subject == "/CN=rsa.example")
        let now: Int64 = Int64(time(nil))
        #expect(context.validity.contains(now))
        #expect((170_000...172_900).contains(context.validity.upperBound - now))
    }

    @Test("new files apply to new connections, old connections continue, bad files change nothing")
    func renewal() throws {
        let server: LoopThread = try SecureEdge.$isOn.withValue(true) { try LoopThread { EchoDelegate($0) } }
        let old = try TestPeer(port: server.port)
        try old.upgrade()
        SecureEdge.make(certificate: path("n.pem"), key: path("n.key"))
        let files = TLSFiles(certificate: path("n.pem"), key: path("n.key"))
        func renew() throws {
            let isDone: Bool = try server.onLoop { loop in
                loop.renew(files, .silent)
                return true
            }
            #expect(isDone)
        }
        func shown() throws -> [UInt8] { try #require(TestPeer(port: server.port).tls).peerKeyHash }
        let first: [UInt8] = try shown()
        #expect(first.count == 32)
        try renew()
        let second: [UInt8] = try shown()
        #expect(first != second)
        write("n.pem", "broken")
        try renew()
        #expect(try shown() == second)
        unlink(path("n.pem"))
        try renew()
        #expect(try shown() == second)
        #expect(server.metrics.net.tlsReloads.value(.done) == 1)
        #expect(server.metrics.net.tlsReloads.value(.failed) == 2)
        try old.sendFrame(.text, Array("still here".utf8))
        #expect(try old.readAnswer() == .text(Array("still here".utf8)))
        try server.stop()
    }
}
