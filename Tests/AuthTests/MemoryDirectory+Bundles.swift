import ThicketAuth
import ThicketCrypto
import ThicketKeyLog

/// Bundles in memory.
extension MemoryDirectory {
    func bundle(of entity: String, in app: String) throws(DirectoryError) -> EntityBundle? {
        bundles["\(app) \(entity)"]
    }

    func put(
        _ bundle: EntityBundle, of entity: String, in app: String, entries: [KeyLogEntry]
    ) throws(DirectoryError) -> Bool {
        let name = "\(app) \(entity)"
        guard (bundles[name]?.bundle.version ?? 0) + 1 == bundle.bundle.version else { return false }
        bundles[name] = bundle
        return true
    }

    func verifier(of secret: [UInt8]) -> [UInt8] { Hash.sha256(secret) }
}
