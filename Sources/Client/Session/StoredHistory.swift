package import ThicketProtocol
internal import ThicketSealed

/// What a server has stored of one object of a sealed bucket, as `thicket history --export` writes it and `thicket
/// verify-history` reads it: `{"history":1,"app":…,"bucket":…,"object":server
/// key,"versions":[{"version":n,"value":{z,s,d}},…]}`, the oldest first. It holds nothing that the server does not
/// have.
package struct StoredHistory: Sendable, Equatable {
    package let app: String
    package let bucket: String
    /// The key under which the server has the object.
    package let object: String
    package let versions: [ObjectVersion]

    private static let form: Int64 = 1

    package init(app: String, bucket: String, object: String, versions: [ObjectVersion]) {
        (self.app, self.bucket, self.object) = (app, bucket, object)
        self.versions = versions.sorted { $0.version < $1.version }
    }

    package var json: JSONValue {
        [
            "history": .number(JSONNumber(Self.form)), "app": .string(app), "bucket": .string(bucket),
            "object": .string(object),
            "versions": .array(
                versions.map { ["version": .number(JSONNumber($0.version)), "value": .object($0.object)] }),
        ]
    }

    /// - Returns: nil for what `json` does not write, as versions that do not grow.
    package init?(_ json: JSONValue) {
        guard json["history"]?.intValue == Self.form, let app = json["app"]?.stringValue,
            let bucket = json["bucket"]?.stringValue, let object = json["object"]?.stringValue,
            let list = json["versions"]?.arrayValue
        else { return nil }
        var versions = [ObjectVersion]()
        for entry in list {
            guard let version = entry["version"]?.intValue, version > versions.last?.version ?? 0,
                let value = entry["value"]?.objectValue
            else { return nil }
            versions.append(ObjectVersion(version: version, object: value))
        }
        self.init(app: app, bucket: bucket, object: object, versions: versions)
    }

    /// Holds the versions against each other. No connection is made.
    ///
    /// - Throws: `sealed` when these are not the keys of the bucket.
    package func check(by account: OpenAccount) throws(ClientError) -> HistoryReport {
        guard app.utf8.elementsEqual(account.app.utf8) else {
            throw ClientError(
                .sealed, "this is a history of the app '\(app)', and the keys are those of '\(account.app)'")
        }
        let keys = try SessionKeys(account).keys(of: bucket)
        var history: SealedHistory
        do { history = try SealedHistory(keys: keys, serverKey: object) } catch {
            throw ClientError(.sealed, "an object's key could not be made: \(error)")
        }
        for version in versions { history.read(version.object, version: version.version) }
        return HistoryReport(history)
    }
}

/// What came out of checking a stored history.
package struct HistoryReport: Sendable, Equatable {
    /// What does not fit, for a person: version by version, no content.
    package let findings: [String]
    /// The app's key; nil: the last version does not open, or does not hold together.
    package let name: String?
    /// Position of the newest operation, and devices that have written.
    package let operations: Int
    package let devices: Int
    /// Times that the object was made anew, as far as the versions show it.
    package let recreations: Int

    init(_ history: SealedHistory) {
        (findings, name) = (history.findings.map(\.description), history.log?.appKey)
        operations = history.log?.position ?? 0
        devices = history.log?.lastPositions.count ?? 0
        recreations = history.recreations
    }
}
