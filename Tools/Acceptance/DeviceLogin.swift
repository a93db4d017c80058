import Glibc
import ThicketClient
import ThicketCrypto
import ThicketProcesses
import ThicketTreesystem

/// What a device has after its first sign-in, in a file, so that devices that are started again need no password.
struct DeviceLogin {
    let server: String
    let apiKey: String
    let token: String
    let account: OpenAccount

    /// Makes the account at a stand's server.
    init(signingUpAt stand: TreeStand) async throws {
        (server, apiKey) = (stand.address, stand.apiKey)
        let app = try ThicketApp(server: server, app: TreeStand.app, apiKey: apiKey, deviceId: "first")
        let login = try await app.accounts().signUp(
            name: TreeStand.name, password: SecureBytes(copying: Array(TreeStand.password.utf8)))
        (token, account) = (login.accessToken, login.account)
    }

    /// Reads what `write` has written.
    init(path: String) throws {
        let lines = String(decoding: TreeStand.bytes(of: path) ?? [], as: UTF8.self).split(separator: "\n")
        guard lines.count == 4 else { throw ProcessError("\(path) has no login") }
        (server, apiKey, token) = (String(lines[0]), String(lines[1]), String(lines[2]))
        account = try DeviceKeys(text: SecureBytes(copying: Array(lines[3].utf8))).open()
    }

    func write(_ path: String) throws {
        let keys = try DeviceKeys(account).text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard let file = fopen(path, "w") else { throw ProcessError("cannot write \(path)") }
        defer { fclose(file) }
        fputs("\(server)\n\(apiKey)\n\(token)\n\(keys)\n", file)
    }

    /// A session of the device whose store is at a path; nil: in memory.
    func session(_ device: String, store: String? = nil) async throws -> ClientSession {
        let app = try ThicketApp(
            server: server, app: TreeStand.app, apiKey: apiKey, store: store.map { .file($0) } ?? .memory,
            deviceId: device)
        return try await app.resume(account, accessToken: token)
    }
}
