import Glibc
import ThicketNet
import ThicketPlatform
import ThicketProtocol

extension TLSFiles {
    /// The files named in the settings; nil: plain HTTP.
    init?(_ config: ServerConfig) {
        guard Self.isGiven(config.tlsCertificate) || Self.isGiven(config.tlsKey) else { return nil }
        self.init(certificate: config.tlsCertificate, key: config.tlsKey)
    }

    /// The mode of the key's file when it grants more than access for its owner and read access for its group; nil when
    /// the mode is fine or cannot be read. The key is still used: in a container, where secrets have mode 0444, no
    /// other users exist.
    var exposedMode: UInt32? {
        var info = stat()
        guard stat(key, &info) == 0, info.st_mode & 0o027 != 0 else { return nil }
        return info.st_mode & 0o777
    }

    /// The warning about such a file.
    func exposure(_ mode: UInt32) -> String {
        "\(key) is accessible to other system users (mode \(octal(mode))): 'chmod 600' it, unless this machine has no "
            + "other users"
    }

    private func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    }

    private static func isGiven(_ path: String) -> Bool { !path.utf8.elementsEqual("none".utf8) }
}

extension TLSContext {
    /// Days before a certificate's end from which on the log warns.
    private static let daysWarned: Int64 = 7

    /// Logs the certificate and its validity, as a warning or an error when it has ended or will end soon.
    func describe(_ files: TLSFiles, to log: Log) {
        if let mode = files.exposedMode {
            log.warning("tls.key_exposed", ["advice": .text(files.exposure(mode))])
        }
        let now = SystemClock.unixMilliseconds() / 1_000
        let days = (validity.upperBound - now) / 86_400
        let fields: LogFields = [
            "subject": .text(subject), "ends_unix": .int(Int(validity.upperBound)), "days_left": .int(Int(days)),
        ]
        if !validity.contains(now) {
            log.error("tls.certificate_not_valid_now", fields)
        } else if days < Self.daysWarned {
            log.warning("tls.certificate_ends_soon", fields)
        } else {
            log.info("tls.certificate", fields)
        }
    }
}

extension EventLoop {
    /// Reads certificate and key again. Open connections keep theirs; unusable files change nothing.
    func renew(_ files: TLSFiles, _ log: Log) {
        do throws(TLSError) {
            let fresh = try TLSContext(files)
            use(fresh)
            metrics.tlsReloads.add(1, .done)
            fresh.describe(files, to: log)
        } catch {
            metrics.tlsReloads.add(1, .failed)
            log.error(
                "tls.reload_failed",
                ["error": .text(error.description), "note": "the previous certificate stays in use"])
        }
    }
}
