import ThicketAuth

// Users with passwords are tested on a store in a file only.
extension MemoryDirectory {
    private func none() -> DirectoryError { DirectoryError("not kept in memory") }

    func registerGuest(
        partner: String, partnerEntity: String, newID: String, now: Double
    ) throws(DirectoryError) -> Profile { throw none() }
    func loggedIn(_ entity: String, now: Double) throws(DirectoryError) -> Profile? { throw none() }
    func add(_ user: NewUser, now: Double) throws(DirectoryError) -> Profile? { throw none() }
    func verifier(of username: String, partner: String) throws(DirectoryError) -> (
        entity: String, verifier: PasswordVerifier
    )? { throw none() }
    func username(of entity: String) throws(DirectoryError) -> String? { throw none() }
    func setVerifier(
        _ verifier: PasswordVerifier, of entity: String, keeping session: [UInt8]?, now: Double
    ) throws(DirectoryError) { throw none() }
    func begin(_ session: LoginSession, now: Double) throws(DirectoryError) { throw none() }
    func session(_ hash: [UInt8]) throws(DirectoryError) -> LoginSession? { nil }
    func endSession(_ hash: [UInt8]) throws(DirectoryError) { throw none() }
    func keep(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool { throw none() }
    func redeem(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool { throw none() }
}
